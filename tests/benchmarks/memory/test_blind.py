"""The blind comparison of two texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.memory.blind import BlindPair, count_verdicts, lay_out, lay_out_pairs

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [f"cabin {fold}" for fold in range(3, 27, 3)] + [f"salt_gate {fold}" for fold in range(3, 27, 3)]


def test_order_is_mixed_and_always_the_same() -> None:
    """Ours is the first in some pairs and the second in others."""
    first = [lay_out(name, "ours", "other").first for name in NAMES]
    assert 4 <= first.count("ours") <= 12
    assert first == [lay_out(name, "ours", "other").first for name in NAMES]


def test_verdicts_are_counted_for_the_right_side() -> None:
    """Whoever always prefers our text gives us every pair."""
    ours = {name: "first" if BlindPair.ours_first(name) else "second" for name in NAMES}
    assert count_verdicts(ours) == {"ours": len(NAMES)}
    assert count_verdicts({NAMES[0]: "equal"}) == {"equal": 1}
    with pytest.raises(ValueError, match="cabin 3"):
        count_verdicts({"cabin 3": "better"})


@pytest.mark.asyncio
async def test_without_answers_there_are_no_pairs(tmp_path: Path) -> None:
    """Both systems need answers."""
    assert await lay_out_pairs(tmp_path) == []
