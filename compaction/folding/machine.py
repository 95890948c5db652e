"""Decides what a session's compaction does next: `handle(signal, now)` changes the state and returns effects.

The machine never awaits, logs or reads a clock. `compactor` carries out the effects and reports the results as signals.
Times are monotonic seconds. At most one run is in flight, and answers of any other run are ignored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, assert_never

from compaction.folding import state as transitions
from compaction.folding.events import FoldFailed, FoldLanded, FoldSkipped
from compaction.folding.signals import (
    AwaitRun,
    CancelRun,
    CheckRequested,
    DeadlinePassed,
    DegradedSegment,
    Effect,
    EmitEvent,
    EndingStored,
    EndRequested,
    FailureSource,
    FoldMade,
    LandingWritten,
    NoteAdded,
    NotesRetired,
    RunFailed,
    Signal,
    StartRun,
    StoreAhead,
    StoreNote,
    StorePendingNotes,
    WriteLanding,
)
from compaction.folding.state import Run, SessionState
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW, Batch, Skip, SkipReason, eligible_turns, plan
from compaction.model import Chapter, CompactionState, Mode, RunId, Segment, Seq
from compaction.notes import PENDING_NOTES_RUN
from compaction.ports import Landing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from compaction.model import Note
    from compaction.settings import CompactionSettings
    from compaction.summary.chapters import ChapterDue

THRESHOLD = RECENT_WINDOW + BATCH_SIZE
# After this many failed repairs (a provider's content filter, for example) the segment stays as the fallback made it.
REPAIR_ATTEMPTS = 3
# After so many failures of the model the fallback makes a chapter: an old one must not block those above it.
CHAPTER_ATTEMPTS = 3
# Skip reasons which mean that no turn is waiting to be folded.
_IDLE = frozenset({SkipReason.BELOW_THRESHOLD, SkipReason.NO_ELIGIBLE_BATCH})


class FoldingMachine:
    """Makes the compaction decisions of one session. Not thread-safe; owned by one compactor."""

    def __init__(
        self, state: SessionState, *, session_id: str, mode: Mode, settings: CompactionSettings, rng: Random
    ) -> None:
        self._state = state
        self._session_id = session_id
        self._mode = mode
        self._settings = settings
        self._rng = rng
        # The last skip, and how many times it was repeated since it was reported.
        self._skip: FoldSkipped | None = None
        self._repeated = 0

    @property
    def state(self) -> SessionState:
        return self._state

    def set_mode(self, mode: Mode) -> None:
        """Change the mode. The result of a run in flight is still stored."""
        self._mode = mode

    def handle(self, event: Signal, now: float) -> tuple[Effect, ...]:
        """Handle one signal and return the effects in the order in which to carry them out. `now`:
        monotonic seconds.
        """
        match event:
            case CheckRequested():
                return self._check(event, now)
            case FoldMade():
                return self._fold_made(event)
            case LandingWritten():
                return self._landing_written(event, now)
            case StoreAhead():
                self._state = transitions.adopt_stored(self._state, event.stored, ended=event.ended, gone=event.gone)
                return ()
            case RunFailed():
                return self._run_failed(event, now)
            case NoteAdded():
                return self._note_added(event.note)
            case NotesRetired():
                return self._notes_retired()
            case EndRequested():
                return self._end_requested()
            case DeadlinePassed():
                return self._deadline_passed(event, now)
            case EndingStored():
                self._state = transitions.finish_ending(self._state)
                return ()
            case _:
                assert_never(event)

    # -- the trigger -----------------------------------------------------------------------------------------

    def _check(self, event: CheckRequested, now: float) -> tuple[Effect, ...]:
        due = self._due(event, now)
        if isinstance(due, Batch):
            return self._begin(self._batch_run(due, now))
        if due.reason in _IDLE:
            repair = self._repair_due(event)
            if repair is not None:
                return self._begin(self._repair_run(repair, event.total_turns, now))
            if event.chapter is not None and self._may_start(event.chapter, event.degraded):
                return self._begin(self._chapter_run(event.chapter, event.total_turns, now))
        return self._skipped(due.reason, event.total_turns)

    def _batch_run(self, batch: Batch, now: float) -> Run:
        state = self._state
        resting = state.model_rest_until is not None and now < state.model_rest_until
        return Run(
            id=self._run_id(),
            start=batch.start,
            end=batch.end,
            recent_start=batch.recent_start,
            note_ids=tuple(note.id for note in state.notes.pending),
            attempt=state.failures + 1,
            degraded=resting,
            started_at=now,
        )

    def _begin(self, run: Run) -> tuple[Effect, ...]:
        self._state = transitions.begin_run(self._state, run)
        return (*self._flush_repeats(), StartRun(run))

    def _repair_due(self, event: CheckRequested) -> DegradedSegment | None:
        """Return the oldest segment to repair, or None if the last model run failed or a batch is due."""
        if not self._state.model_well:
            return None
        return next((each for each in event.degraded if not self._given_up(each)), None)

    def _given_up(self, segment: DegradedSegment) -> bool:
        return self._state.failed_repairs.get(segment.segment_id, 0) >= REPAIR_ATTEMPTS

    def _may_start(self, chapter: ChapterDue, degraded: Sequence[DegradedSegment]) -> bool:
        """Return whether the chapter may be made now: one after each landing, and only over segments that are final."""
        state = self._state
        if not state.chapter_allowed or not (state.model_well or self._without_model(chapter)):
            return False
        return not any(
            chapter.start <= each.start < chapter.end and not self._given_up(each)
            for each in degraded
            if chapter.level == 1
        )

    def _without_model(self, chapter: ChapterDue) -> bool:
        return self._state.failed_chapters.get(chapter, 0) >= CHAPTER_ATTEMPTS

    def _chapter_run(self, chapter: ChapterDue, total_turns: int, now: float) -> Run:
        return Run(
            id=self._run_id(),
            start=chapter.start,
            end=chapter.end,
            recent_start=self._recent_start(total_turns),
            note_ids=(),
            attempt=self._state.failed_chapters.get(chapter, 0) + 1,
            degraded=self._without_model(chapter),
            started_at=now,
            chapter=chapter,
        )

    def _run_id(self) -> RunId:
        return RunId(f"{self._rng.getrandbits(64):016x}")

    def _recent_start(self, total_turns: int) -> Seq:
        cursor = self._state.memory.cursor
        return Seq(cursor + eligible_turns(total_turns, cursor))

    def _repair_run(self, repair: DegradedSegment, total_turns: int, now: float) -> Run:
        return Run(
            id=self._run_id(),
            start=repair.start,
            end=repair.end,
            recent_start=self._recent_start(total_turns),
            note_ids=(),
            attempt=self._state.failed_repairs.get(repair.segment_id, 0) + 1,
            degraded=False,
            started_at=now,
            repairs=repair.segment_id,
        )

    def _due(self, event: CheckRequested, now: float) -> Batch | Skip:
        """Return the batch to fold, or the reason why none is due. The batch has no turns if only notes are folded."""
        state = self._state
        if self._mode is not Mode.SUMMARY:
            return Skip(SkipReason.DISABLED)
        cursor = state.memory.cursor
        due = plan(event.total_turns, cursor, in_flight=state.run is not None, ending=state.ending)
        if isinstance(due, Batch) and due.end > event.stored_turns:
            due = Skip(SkipReason.NO_ELIGIBLE_BATCH)
        if isinstance(due, Skip):
            quiet = due.reason in {SkipReason.BELOW_THRESHOLD, SkipReason.NO_ELIGIBLE_BATCH}
            if not (quiet and len(state.notes.pending) >= PENDING_NOTES_RUN):
                return due
            eligible = eligible_turns(event.total_turns, cursor)
            due = Batch(start=cursor, end=cursor, recent_start=Seq(cursor + eligible), eligible=eligible)
        if state.hold_until is not None and now < state.hold_until:
            return Skip(SkipReason.BACKING_OFF)
        return due

    def _skipped(self, reason: SkipReason, total_turns: int) -> tuple[Effect, ...]:
        state = self._state
        skip = FoldSkipped(
            run_id=None if state.run is None else state.run.id,
            reason=reason,
            cursor=state.memory.cursor,
            total_turns=total_turns,
            eligible_count=eligible_turns(total_turns, state.memory.cursor),
            threshold=THRESHOLD,
            pending_note_count=len(state.notes.pending),
            repeated=0,
        )
        if self._skip is not None and self._skip.reason is reason:
            self._repeated += 1
            self._skip = skip
            return ()
        repeats = self._flush_repeats()
        self._skip = skip
        return (*repeats, EmitEvent(skip))

    def _flush_repeats(self) -> tuple[Effect, ...]:
        """Return the event that reports the counted skips, and reset the count."""
        skip, repeated = self._skip, self._repeated
        self._skip, self._repeated = None, 0
        if skip is None or repeated == 0:
            return ()
        return (EmitEvent(replace(skip, repeated=repeated)),)

    # -- the run in flight -----------------------------------------------------------------------------------------

    def _fold_made(self, event: FoldMade) -> tuple[Effect, ...]:
        state = self._state
        run = state.current_run(event.run_id)
        if run is None:
            return ()
        memory = CompactionState(
            cursor=state.memory.cursor if run.moves_cursor_to is None else run.moves_cursor_to,
            revision=state.memory.revision + 1,
            summary=event.summary,
            last_at=event.at,
        )
        landing = Landing(
            session_id=event.record.session_id,
            expected_cursor=state.memory.cursor,
            expected_revision=state.memory.revision,
            segment=event.record if isinstance(event.record, Segment) else None,
            state=memory,
            folded_note_ids=run.note_ids,
            repairs=run.repairs is not None,
            chapter=event.record if isinstance(event.record, Chapter) else None,
        )
        self._state = transitions.await_landing(state, run.id, landing)
        return (WriteLanding(run.id, landing),)

    def _landing_written(self, event: LandingWritten, now: float) -> tuple[Effect, ...]:
        run = self._state.current_run(event.run_id)
        if run is None or run.landing is None:
            return ()
        self._state = transitions.land_run(self._state, run.id)
        landing = run.landing
        summary = landing.state.summary or ""
        record = landing.segment or landing.chapter
        assert record is not None, "a landing stores what its run made"
        return (
            EmitEvent(
                FoldLanded(
                    run_id=run.id,
                    old_cursor=landing.expected_cursor,
                    new_cursor=landing.state.cursor,
                    covered_through_turn=landing.state.covered_through_turn,
                    summary=summary,
                    summary_chars=len(summary),
                    latency_ms=_ms(now - run.started_at),
                    prompt_tokens=event.prompt_tokens,
                    completion_tokens=event.completion_tokens,
                    folded_note_count=len(run.note_ids),
                    degraded=run.degraded,
                    repairs=run.repairs,
                    chapter_level=run.chapter_level,
                    paragraph_by=_paragraph_by(run, record, by_model=event.by_model),
                    paragraph_problem=record.paragraph_problem,
                )
            ),
        )

    def _run_failed(self, event: RunFailed, now: float) -> tuple[Effect, ...]:
        state = self._state
        run = state.current_run(event.run_id)
        if run is None:
            return ()
        if run.repairs is not None:
            # Turns that are gone for good can't be folded again either.
            counts = event.culprit is FailureSource.MODEL or not event.retryable
            self._state = transitions.fail_repair(state, run.id, counts=counts)
            return (EmitEvent(_failure(event, run, state, now, None)),)
        if run.chapter is not None:
            by_model = event.culprit is FailureSource.MODEL
            self._state = transitions.fail_chapter(state, run.id, by_model=by_model)
            return (EmitEvent(_failure(event, run, state, now, None)),)
        settings = self._settings
        model_failures = state.model_failures
        hold_until: float | None = None
        rest_until = state.model_rest_until
        if event.culprit is FailureSource.MODEL:
            model_failures += 1
            if not event.retryable:
                # An error that can't be retried, such as a wrong API key, will not go away, so the fallback takes over
                # at once.
                model_failures = max(model_failures, settings.failures_before_degraded)
        if event.culprit is FailureSource.MODEL and model_failures >= settings.failures_before_degraded:
            # The fallback takes over immediately. The model is tried again after a pause.
            next_retry_s = self._pause_s(model_failures)
            rest_until = now + next_retry_s
        else:
            next_retry_s = self._pause_s(state.failures + 1)
            hold_until = now + next_retry_s
        self._state = transitions.fail_run(
            state, run.id, model_failures=model_failures, hold_until=hold_until, model_rest_until=rest_until
        )
        return (EmitEvent(_failure(event, run, state, now, None if state.ending else next_retry_s)),)

    def _pause_s(self, failures: int) -> float:
        """Return how long to pause after this many failures. The pause doubles with each failure, up to a limit.

        Up to half of the pause is removed at random, so that not all rooms of one bot call a recovering model at the
        same moment. This is the retry backoff of one session and not a circuit breaker like the one in `voice`.
        """
        settings = self._settings
        # The exponent is limited because 2.0 ** 2000 raises OverflowError.
        full = min(settings.retry_max_s, settings.retry_base_s * 2.0 ** min(failures - 1, 30))
        # Rounded to the millisecond, so that the logged pause is exact.
        return round(full * (0.5 + self._rng.random() / 2), 3)

    # -- notes -----------------------------------------------------------------------------------------------

    def _note_added(self, note: Note) -> tuple[Effect, ...]:
        before = self._state.notes
        after = before.with_note(note)
        if after is before:
            return ()
        self._state = transitions.replace_notes(self._state, after)
        stored: tuple[Effect, ...] = (StoreNote(note),)
        moved = after.newly_pending(before)
        return (*stored, StorePendingNotes(moved)) if moved else stored

    def _notes_retired(self) -> tuple[Effect, ...]:
        before = self._state.notes
        after = before.with_all_pending()
        self._state = transitions.replace_notes(self._state, after)
        moved = after.newly_pending(before)
        return (StorePendingNotes(moved),) if moved else ()

    # -- the end ---------------------------------------------------------------------------------------------

    def _end_requested(self) -> tuple[Effect, ...]:
        self._state = transitions.start_ending(self._state)
        run = self._state.run
        return () if run is None else (AwaitRun(run.id, self._settings.ending_deadline_s),)

    def _deadline_passed(self, event: DeadlinePassed, now: float) -> tuple[Effect, ...]:
        state = self._state
        run = state.run
        if run is None:
            return ()
        self._state = transitions.drop_run(state)
        late = RunFailed(
            run_id=run.id,
            culprit=FailureSource.MODEL,
            error_class="SessionEnding",
            error="The session ended before the summary came.",
            timeout=True,
            retryable=False,
            model=event.model,
        )
        return (CancelRun(run.id), EmitEvent(_failure(late, run, state, now, None)))


def _failure(event: RunFailed, run: Run, state: SessionState, now: float, next_retry_s: float | None) -> FoldFailed:
    return FoldFailed(
        run_id=run.id,
        cursor=state.memory.cursor,
        batch_size=run.batch_size,
        pending_note_count=len(state.notes.pending),
        model=event.model,
        error_class=event.error_class,
        error=event.error,
        timeout=event.timeout,
        retryable=event.retryable,
        attempt=run.attempt,
        next_retry_s=next_retry_s,
        latency_ms=_ms(now - run.started_at),
        repairs=run.repairs,
        chapter_level=run.chapter_level,
    )


def _paragraph_by(run: Run, record: Segment | Chapter, *, by_model: bool) -> Literal["model", "code", "nobody"]:
    if run.repairs:
        return "nobody"
    return "model" if record.paragraph and by_model else "code"


def _ms(seconds: float) -> float:
    return round(seconds * 1000.0, 1)
