"""The blind comparison of two texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.memory.blind import BlindPair, count_verdicts, lay_out, lay_out_pairs, read_verdicts

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [f"{conversation} {fold}" for conversation in ("cabin", "salt_gate") for fold in range(1, 27)]


def test_order_is_mixed_and_always_the_same() -> None:
    """Ours is the first in some pairs and the second in others."""
    first = [lay_out(name, "ours", "other").first for name in NAMES]
    assert len(NAMES) // 4 <= first.count("ours") <= 3 * len(NAMES) // 4
    assert first == [lay_out(name, "ours", "other").first for name in NAMES]


def test_verdicts_are_counted_for_the_right_side() -> None:
    """Whoever always prefers our text gives us every pair."""
    ours = {name: ["first" if BlindPair.ours_first(name) else "second"] for name in NAMES}
    assert count_verdicts(ours) == {"ours": len(NAMES)}
    assert count_verdicts({NAMES[0]: ["equal", "equal"]}) == {"equal": 2}
    with pytest.raises(ValueError, match="cabin 3"):
        count_verdicts({"cabin 3": ["first", "better"]})


def test_the_share_counts_every_judge(tmp_path: Path) -> None:
    """A pair has a verdict of each judge; a draw counts for ours."""
    path = tmp_path / "verdicts.toml"
    path.write_text('"cabin 2" = ["first", "second", "equal"]\n"cabin 4" = ["equal", "equal", "equal"]\n', "utf-8")
    found = read_verdicts(path)
    assert (found["pairs"], found["verdicts"], found["equal"]) == (2, 6, 4)
    assert found["share"] == pytest.approx(5 / 6, abs=1e-3)
    assert read_verdicts(tmp_path / "none.toml") == {}


@pytest.mark.asyncio
async def test_without_answers_there_are_no_pairs(tmp_path: Path) -> None:
    """Both systems need answers."""
    assert await lay_out_pairs(tmp_path) == []
