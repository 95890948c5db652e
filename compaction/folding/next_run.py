"""Decides which run a check begins: of a batch, of notes alone, a repair or a chapter; or why it begins none. Pure.

Batches come first. A segment is repaired when no batch is due, and a chapter is made when no segment waits for repair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.folding.state import Run
from compaction.folding.window import Batch, Skip, SkipReason, eligible_turns, plan
from compaction.model import Mode, Seq
from compaction.notes import PENDING_NOTES_RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from compaction.folding.signals import CheckRequested, DegradedSegment
    from compaction.folding.state import SessionState
    from compaction.model import RunId
    from compaction.summary.chapters import ChapterDue

# After this many failed repairs (a provider's content filter, for example) the segment stays as the fallback made it.
REPAIR_ATTEMPTS = 3
# After so many failures of the model the fallback makes a chapter: an old one must not block those above it.
CHAPTER_ATTEMPTS = 3
# Skip reasons which mean that no turn is waiting to be folded.
_IDLE = frozenset({SkipReason.BELOW_THRESHOLD, SkipReason.NO_ELIGIBLE_BATCH})


def next_run(
    state: SessionState, check: CheckRequested, *, mode: Mode, now: float, new_id: Callable[[], RunId]
) -> Run | Skip:
    """Return the run to begin, or the reason why none is due. `now`: monotonic seconds. `new_id`: names the run."""
    due = _due(state, check, mode, now)
    if isinstance(due, Batch):
        return _batch_run(state, due, new_id(), now)
    if due.reason in _IDLE:
        recent_start = Seq(state.memory.cursor + eligible_turns(check.total_turns, state.memory.cursor))
        repair = _repair_due(state, check)
        if repair is not None:
            return _repair_run(state, repair, recent_start, new_id(), now)
        if check.chapter is not None and _may_start(state, check.chapter, check):
            return _chapter_run(state, check.chapter, recent_start, new_id(), now)
    return due


def _due(state: SessionState, check: CheckRequested, mode: Mode, now: float) -> Batch | Skip:
    """Return the batch to fold, or the reason why none is due. The batch has no turns if only notes are folded."""
    if mode is not Mode.SUMMARY:
        return Skip(SkipReason.DISABLED)
    cursor = state.memory.cursor
    due = plan(check.total_turns, cursor, in_flight=state.run is not None, ending=state.ending)
    if isinstance(due, Batch) and due.end > check.stored_turns:
        due = Skip(SkipReason.NO_ELIGIBLE_BATCH)
    if isinstance(due, Skip):
        if due.reason not in _IDLE or len(state.notes.pending) < PENDING_NOTES_RUN:
            return due
        eligible = eligible_turns(check.total_turns, cursor)
        due = Batch(start=cursor, end=cursor, recent_start=Seq(cursor + eligible), eligible=eligible)
    if state.hold_until is not None and now < state.hold_until:
        return Skip(SkipReason.BACKING_OFF)
    return due


def _batch_run(state: SessionState, batch: Batch, run_id: RunId, now: float) -> Run:
    return Run(
        id=run_id,
        start=batch.start,
        end=batch.end,
        recent_start=batch.recent_start,
        note_ids=tuple(note.id for note in state.notes.pending),
        attempt=state.failures + 1,
        degraded=state.model_rest_until is not None and now < state.model_rest_until,
        started_at=now,
    )


def _repair_due(state: SessionState, check: CheckRequested) -> DegradedSegment | None:
    """Return the oldest segment to repair, or None if the last model run failed."""
    if not state.model_well:
        return None
    return next((each for each in check.degraded if not _given_up(state, each)), None)


def _given_up(state: SessionState, segment: DegradedSegment) -> bool:
    return state.failed_repairs.get(segment.segment_id, 0) >= REPAIR_ATTEMPTS


def _repair_run(state: SessionState, repair: DegradedSegment, recent_start: Seq, run_id: RunId, now: float) -> Run:
    return Run(
        id=run_id,
        start=repair.start,
        end=repair.end,
        recent_start=recent_start,
        note_ids=(),
        attempt=state.failed_repairs.get(repair.segment_id, 0) + 1,
        degraded=False,
        started_at=now,
        repairs=repair.segment_id,
    )


def _may_start(state: SessionState, chapter: ChapterDue, check: CheckRequested) -> bool:
    """Return whether the chapter may be made now: one after each landing, and only over segments that are final."""
    if not state.chapter_allowed or not (state.model_well or _without_model(state, chapter)):
        return False
    return not any(
        chapter.start <= each.start < chapter.end and not _given_up(state, each)
        for each in check.degraded
        if chapter.level == 1
    )


def _without_model(state: SessionState, chapter: ChapterDue) -> bool:
    return state.failed_chapters.get(chapter, 0) >= CHAPTER_ATTEMPTS


def _chapter_run(state: SessionState, chapter: ChapterDue, recent_start: Seq, run_id: RunId, now: float) -> Run:
    return Run(
        id=run_id,
        start=chapter.start,
        end=chapter.end,
        recent_start=recent_start,
        note_ids=(),
        attempt=state.failed_chapters.get(chapter, 0) + 1,
        degraded=_without_model(state, chapter),
        started_at=now,
        chapter=chapter,
    )
