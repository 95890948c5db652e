"""The list of bundled scenarios. tests/scenarios plays whole rehearsals."""

from __future__ import annotations

from bot.cli.rehearsal.command import bundled


def test_the_bundled_scenarios_are_listed() -> None:
    """Each scenario is listed with its name and title on one line, sorted by name."""
    lines = bundled()
    assert ["hush", "Be quiet"] in [line.split(maxsplit=1) for line in lines]
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
