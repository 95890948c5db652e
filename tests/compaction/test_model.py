"""The small derived properties of the value types."""

from __future__ import annotations

import pytest

from compaction.model import (
    Chapter,
    ChapterId,
    CompactionState,
    Fact,
    FactKind,
    NoteId,
    Segment,
    SegmentId,
    Seq,
    SessionId,
    has_model_paragraph,
)


def test_covered_through_turn_is_the_last_folded() -> None:
    """The last folded turn is the turn before the cursor, and -1 before the first landing."""
    assert CompactionState().covered_through_turn == -1
    assert CompactionState(cursor=Seq(10)).covered_through_turn == 9


def test_fact_is_told_with_its_speaker() -> None:
    """What was seen says so itself."""
    assert Fact((Seq(1),), FactKind.DECISION, "Ada", 0.0, "We leave.").attributed_text == "Ada: We leave."
    seen = Fact((Seq(1),), FactKind.DOING, "Bob", 0.0, "On Bob's screen: a map.", note_id=NoteId("n"))
    assert seen.attributed_text == "On Bob's screen: a map."


@pytest.mark.parametrize(
    ("summariser", "paragraph", "by_model"),
    [
        ("llm ledger.v8", "They met.", True),
        ("llm ledger.v8", "", False),
        # Under the strategy `recursive` code writes a paragraph too.
        ("extractive recursive", "They met.", False),
    ],
)
def test_whose_paragraph_it_is(summariser: str, paragraph: str, *, by_model: bool) -> None:
    """The record tells it, of a segment and of a chapter."""
    folded = Segment(
        SegmentId("s:0-10"),
        SessionId("s"),
        Seq(0),
        Seq(10),
        0.0,
        9.0,
        "They met.",
        (),
        (),
        summariser,
        paragraph=paragraph,
    )
    chapter = Chapter(
        ChapterId("s:0-80@1"),
        SessionId("s"),
        1,
        Seq(0),
        Seq(80),
        0.0,
        9.0,
        "They met.",
        (),
        summariser,
        paragraph=paragraph,
    )
    assert (has_model_paragraph(folded), has_model_paragraph(chapter)) == (by_model, by_model)
