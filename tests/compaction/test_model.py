"""The small derived properties of the value types."""

from __future__ import annotations

from compaction.model import CompactionState, Fact, FactKind, NoteId, Seq


def test_covered_through_turn_is_the_last_folded() -> None:
    """The last folded turn is the turn before the cursor, and -1 before the first landing."""
    assert CompactionState().covered_through_turn == -1
    assert CompactionState(cursor=Seq(10)).covered_through_turn == 9


def test_fact_is_told_with_its_speaker() -> None:
    """What was seen says so itself."""
    assert Fact((Seq(1),), FactKind.DECISION, "Ada", 0.0, "We leave.").attributed_text == "Ada: We leave."
    seen = Fact((Seq(1),), FactKind.DOING, "Bob", 0.0, "On Bob's screen: a map.", note_id=NoteId("n"))
    assert seen.attributed_text == "On Bob's screen: a map."
