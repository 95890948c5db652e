"""What a check begins: batches first, then repairs, then chapters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.folding.next_run import CHAPTER_ATTEMPTS, REPAIR_ATTEMPTS, next_run
from compaction.folding.signals import CheckRequested, DegradedSegment
from compaction.folding.state import Run, SessionState
from compaction.folding.window import Skip, SkipReason
from compaction.model import CompactionState, Mode, NoteId, RunId, SegmentId, Seq
from compaction.notes import PENDING_NOTES_RUN, NoteBuffer
from compaction.summary.chapters import ChapterDue
from tests.compaction.turn_store_contract import note

FIRST = DegradedSegment(SegmentId("s0"), Seq(0), Seq(10))
SECOND = DegradedSegment(SegmentId("s1"), Seq(10), Seq(20))
CHAPTER = ChapterDue(1, Seq(0), Seq(80), 0.0, 80.0)
# A session of which eighty turns are folded and none is due. The model works, and a batch has just landed.
FOLDED = SessionState(memory=CompactionState(cursor=Seq(80), revision=8), model_well=True, chapter_allowed=True)
NOTHING_DUE = CheckRequested(total_turns=100, stored_turns=100)
NOW = 50.0


def begun(state: SessionState, check: CheckRequested, *, mode: Mode = Mode.SUMMARY) -> Run | Skip:
    return next_run(state, check, mode=mode, now=NOW, new_id=lambda: RunId("r"))


def of_run(found: Run | Skip) -> tuple[str, int, int]:
    """Return what a run makes, and of which turns."""
    assert isinstance(found, Run)
    return ("repair" if found.repairs else "chapter" if found.chapter else "batch", found.start, found.end)


@pytest.mark.parametrize(
    ("total", "expected"),
    [(141, ("batch", 80, 90)), (140, ("repair", 0, 10))],
)
def test_batches_go_before_repairs_and_these_before_chapters(total: int, expected: tuple[str, int, int]) -> None:
    """A chapter waits for the segments under it, so it comes last."""
    check = CheckRequested(total, total, degraded=(FIRST, SECOND), chapter=CHAPTER)
    assert of_run(begun(FOLDED, check)) == expected


def test_chapter_waits_for_its_own_segments_alone() -> None:
    """A degraded segment outside its turns does not hold it up, nor one that was given up."""
    later = replace(SECOND, start=Seq(80), end=Seq(90))
    given_up = replace(FOLDED, failed_repairs={FIRST.segment_id: REPAIR_ATTEMPTS, later.segment_id: REPAIR_ATTEMPTS})
    check = replace(NOTHING_DUE, degraded=(FIRST, later), chapter=CHAPTER)
    assert of_run(begun(FOLDED, check)) == ("repair", 0, 10)
    assert of_run(begun(given_up, check)) == ("chapter", 0, 80)


def test_segment_that_was_given_up_holds_up_no_other() -> None:
    state = replace(FOLDED, failed_repairs={FIRST.segment_id: REPAIR_ATTEMPTS})
    assert of_run(begun(state, replace(NOTHING_DUE, degraded=(FIRST, SECOND)))) == ("repair", 10, 20)


def test_a_repair_tells_which_attempt_it_is() -> None:
    for failed in range(REPAIR_ATTEMPTS):
        state = replace(FOLDED, failed_repairs={FIRST.segment_id: failed})
        run = begun(state, replace(NOTHING_DUE, degraded=(FIRST,)))
        assert isinstance(run, Run)
        assert run.attempt == failed + 1


def test_neither_is_made_after_a_failure_of_the_model() -> None:
    """Both wait until it works again. A chapter that it failed to make often enough is made without it."""
    failing = replace(FOLDED, model_well=False)
    check = replace(NOTHING_DUE, degraded=(SECOND,), chapter=replace(CHAPTER, start=Seq(20)))
    assert begun(failing, check) == Skip(SkipReason.BELOW_THRESHOLD)
    assert check.chapter is not None
    run = begun(replace(failing, failed_chapters={check.chapter: CHAPTER_ATTEMPTS}), check)
    assert isinstance(run, Run)
    assert (run.chapter, run.degraded, run.attempt) == (check.chapter, True, CHAPTER_ATTEMPTS + 1)


GIVEN_UP = replace(SECOND, segment_id=SegmentId("given up"))
LATER = replace(SECOND, start=Seq(80), end=Seq(90))


@pytest.mark.parametrize(
    ("degraded", "level", "is_made"),
    [
        ((), 1, True),
        ((FIRST,), 1, False),
        ((GIVEN_UP, FIRST), 1, False),
        ((GIVEN_UP,), 1, True),
        ((LATER,), 1, True),
        # It is made of chapters, which were made of segments that were final.
        ((FIRST,), 2, True),
    ],
)
def test_no_chapter_is_made_of_what_waits_to_be_made_again(
    degraded: tuple[DegradedSegment, ...], level: int, is_made: bool
) -> None:
    """Not even without the model, which has failed to make it often enough and fails now."""
    chapter = replace(CHAPTER, level=level)
    state = replace(
        FOLDED,
        model_well=False,
        failed_repairs={GIVEN_UP.segment_id: REPAIR_ATTEMPTS},
        failed_chapters={chapter: CHAPTER_ATTEMPTS},
    )
    made = begun(state, replace(NOTHING_DUE, degraded=degraded, chapter=chapter))
    assert isinstance(made, Run) is is_made


@pytest.mark.parametrize(
    ("state", "mode", "reason"),
    [
        (FOLDED, Mode.OFF, SkipReason.DISABLED),
        (replace(FOLDED, ending=True), Mode.SUMMARY, SkipReason.SESSION_ENDING),
    ],
)
def test_nothing_begins_in_another_mode_or_at_the_end(state: SessionState, mode: Mode, reason: SkipReason) -> None:
    check = CheckRequested(200, 200, degraded=(FIRST,), chapter=CHAPTER)
    assert begun(state, check, mode=mode) == Skip(reason)


def test_many_pending_notes_make_a_run_of_their_own() -> None:
    """It begins where the next batch would, and waits out a pause after a failure as a batch does."""
    notes = tuple(note(f"n{number}") for number in range(PENDING_NOTES_RUN))
    state = replace(FOLDED, notes=NoteBuffer(pending=notes))
    run = begun(state, NOTHING_DUE)
    assert isinstance(run, Run)
    assert (run.start, run.end, run.note_ids[-1]) == (80, 80, NoteId(f"n{PENDING_NOTES_RUN - 1}"))
    assert begun(replace(state, hold_until=NOW + 1.0), NOTHING_DUE) == Skip(SkipReason.BACKING_OFF)
