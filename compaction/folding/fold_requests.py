"""Builds the input of a summariser: for a batch that is due, the repair of a degraded segment, or a chapter. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.model import Seq
from compaction.summary.port import REACH_TURNS, FoldRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.folding.state import Run
    from compaction.model import Note, RenderedSummary, SegmentId, Strategy, Turn
    from compaction.summary.chapters import ChapterDue
    from compaction.summary.ledger import SegmentLedger
    from compaction.summary.port import ChapterRequest
    from compaction.timeline import Timeline


def first_context_turn(start: Seq) -> Seq:
    """Return the first turn before a batch to which a short correction in the batch may refer ('No, Sunday now')."""
    return Seq(max(0, start - REACH_TURNS))


def turns_before(timeline: Timeline, start: Seq) -> tuple[Turn, ...]:
    """Return the turns just before `start`, as far as they are in memory."""
    return timeline.between(max(timeline.first, first_context_turn(start)), start)


def notes_of(run: Run, pending: Sequence[Note]) -> tuple[Note, ...]:
    """Return those of the pending notes that a run folds, oldest first."""
    carried = frozenset(run.note_ids)
    return tuple(note for note in pending if note.id in carried)


def request_for_batch(
    run: Run,
    timeline: Timeline,
    ledger: SegmentLedger,
    *,
    rendered: RenderedSummary | None,
    pending: Sequence[Note],
    strategy: Strategy,
) -> FoldRequest:
    """Return the request for a run's batch. It contains those of the `pending` notes that the run folds."""
    window = timeline.since(run.start)
    return FoldRequest(
        start=run.start,
        turns=timeline.between(run.start, run.end),
        notes=notes_of(run, pending),
        previous=None if rendered is None else rendered.text,
        known=ledger.known_facts(),
        before=turns_before(timeline, run.start),
        roster=ledger.roster | {part.speaker for turn in window for part in turn.parts},
        strategy=strategy,
        chapters=ledger.told_chapters,
    )


def request_for_repair(
    run: Run, segment_id: SegmentId, stored: Sequence[Turn], ledger: SegmentLedger, *, strategy: Strategy
) -> FoldRequest:
    """Return the request to fold a segment's batch again, with the facts that were known before that batch.

    `stored`: the batch's turns and the turns just before it.
    """
    before = ledger.before(segment_id)
    rendered = before.render()
    turns = tuple(turn for turn in stored if turn.seq >= run.start)
    return FoldRequest(
        start=run.start,
        turns=turns,
        notes=(),
        previous=None if rendered is None else rendered.text,
        known=before.known_facts(),
        before=tuple(turn for turn in stored if turn.seq < run.start),
        roster=ledger.roster | {part.speaker for turn in turns for part in turn.parts},
        strategy=strategy,
        chapters=before.told_chapters,
        wants_paragraph=False,
    )


def request_for_chapter(
    due: ChapterDue, timeline: Timeline, ledger: SegmentLedger, *, rendered: RenderedSummary | None
) -> ChapterRequest:
    """Return the request to make the chapter that is due. `rendered`: the summary that stands now."""
    request = ledger.chapter_request(due, summary="" if rendered is None else rendered.text)
    speakers = {part.speaker for turn in timeline.since(timeline.first) for part in turn.parts}
    return replace(request, roster=request.roster | speakers)
