"""What can be played; the whole rehearsal is played in tests/scenarios."""

from __future__ import annotations

from bot.cli.rehearsal.command import bundled


def test_the_bundled_scenarios_are_listed() -> None:
    """By the name to type and the title, one a line."""
    lines = bundled()
    assert ["hush", "Be quiet"] in [line.split(maxsplit=1) for line in lines]
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
