"""The small derived properties of the value types."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.model import EXTRACTIVE, CompactionState, Seq
from tests.compaction.turn_store_contract import segment


def test_covered_through_turn_is_the_last_folded() -> None:
    """The last folded turn is the turn before the cursor, and -1 before the first landing."""
    assert CompactionState().covered_through_turn == -1
    assert CompactionState(cursor=Seq(10)).covered_through_turn == 9


@pytest.mark.parametrize(("version", "by_model"), [("fold.v1", True), (EXTRACTIVE, False), ("", False)])
def test_who_wrote_a_segment(version: str, *, by_model: bool) -> None:
    """The version of the prompt tells it."""
    assert replace(segment(0, 10), prompt_version=version).is_by_model is by_model
