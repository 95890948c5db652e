"""A stored segment says what it covers, and a retry makes the same segment id."""

from __future__ import annotations

from dataclasses import replace

from compaction.model import Segment, Seq
from compaction.summary.extractive import extract_facts
from compaction.summary.port import Fold, FoldRequest
from compaction.summary.segments import make_closing_segment, make_segment
from tests.compaction.turn_store_contract import EVENING, T0, note, turn

TURNS = tuple(turn(seq, "We rent the cabin in Braemar.") for seq in range(10, 20))


def made(request: FoldRequest, *, revision: int = 1) -> Segment:
    fold = Fold("They rent a cabin.", extract_facts(request.turns, request.notes, start=request.start))
    return make_segment(
        request, fold, session_id=EVENING, revision=revision, summariser="llm", degraded=False, at=T0 + 99.0
    )


def test_segment_says_what_it_covers() -> None:
    """A segment records its range of turns, its times, its notes, and its tokens before and after."""
    segment = made(FoldRequest(Seq(10), TURNS, (note("n", at=T0),), None))
    assert (segment.id, segment.start, segment.end) == ("evening:10-20", 10, 20)
    assert (segment.started_at, segment.ended_at, segment.created_at) == (T0, T0 + 19 * 3.0 + 2.25, T0 + 99.0)
    assert segment.note_ids == ("n",)
    assert segment.original_tokens > segment.compressed_tokens > 0


def test_retry_makes_the_same_id() -> None:
    """The id of a segment depends on its range and not on the attempt."""
    request = FoldRequest(Seq(10), TURNS, (), None)
    assert made(request, revision=1).id == made(request, revision=2).id


def test_notes_alone_are_told_apart_by_revision() -> None:
    """Two runs of notes at the same cursor give two segments with an empty range and different ids."""
    request = FoldRequest(Seq(10), (), (note("n"),), None)
    first, second = made(request, revision=1), made(request, revision=2)
    assert first.id != second.id
    assert (first.start, first.end) == (10, 10)


def test_closing_segment_covers_the_rest() -> None:
    """The closing segment covers the turns from the cursor to the end, with sentences from these turns. If no turns are
    left, there is no closing segment.
    """
    segment = make_closing_segment(TURNS, (), session_id=EVENING, known=(), degraded=True, at=T0)
    assert segment is not None
    assert (segment.start, segment.end, segment.closing, segment.degraded) == (10, 20, True, True)
    assert "Braemar" in segment.gist
    assert make_closing_segment((), (), session_id=EVENING, known=(), degraded=False, at=T0) is None


def test_forgotten_turns_leave_a_record() -> None:
    """Forgotten turns, which have no words, are covered by a segment too."""
    gone = tuple(replace(each, parts=(), tombstone=True) for each in TURNS)
    segment = make_closing_segment(gone, (), session_id=EVENING, known=(), degraded=False, at=T0)
    assert segment is not None
    assert (segment.facts, segment.gist) == ((), "Nothing was said.")
