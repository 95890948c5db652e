"""Decides what a session's compaction does next: `handle(signal, now)` changes the state and returns effects.

The machine never awaits, logs or reads a clock. `compactor` carries out the effects and reports the results as signals.
Times are monotonic seconds. At most one run is in flight, and answers of any other run are ignored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

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
    LandingWritten,
    NoteAdded,
    NotesRetired,
    RunFailed,
    SegmentMade,
    Signal,
    StartRun,
    StoreAhead,
    StoreNote,
    StorePendingNotes,
    WriteLanding,
)
from compaction.folding.state import Run, SessionState
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW, Batch, Skip, SkipReason, eligible_turns, plan
from compaction.model import CompactionState, Mode, RunId, Seq
from compaction.notes import PENDING_NOTES_RUN
from compaction.ports import Landing

if TYPE_CHECKING:
    from random import Random

    from compaction.model import Note
    from compaction.settings import CompactionSettings

THRESHOLD = RECENT_WINDOW + BATCH_SIZE
# After this many failed repairs (a provider's content filter, for example) the segment stays as the fallback made it.
REPAIR_ATTEMPTS = 3
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
            case SegmentMade():
                return self._segment_made(event)
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
        state = self._state
        repair = self._repair_due(event, due.reason) if isinstance(due, Skip) else None
        if repair is not None:
            return self._begin(self._repair_run(repair, event.total_turns, now))
        if isinstance(due, Skip):
            return self._skipped(due.reason, event.total_turns)
        start, end, recent_start = due.start, due.end, due.recent_start
        resting = state.model_rest_until is not None and now < state.model_rest_until
        run = Run(
            id=RunId(f"{self._rng.getrandbits(64):016x}"),
            start=start,
            end=end,
            recent_start=recent_start,
            note_ids=tuple(note.id for note in state.notes.pending),
            attempt=state.failures + 1,
            degraded=resting,
            started_at=now,
        )
        return self._begin(run)

    def _begin(self, run: Run) -> tuple[Effect, ...]:
        self._state = transitions.begin_run(self._state, run)
        return (*self._flush_repeats(), StartRun(run))

    def _repair_due(self, event: CheckRequested, reason: SkipReason) -> DegradedSegment | None:
        """Return the oldest segment to repair, or None if the last model run failed or a batch is due."""
        state = self._state
        if reason not in _IDLE or not state.model_well:
            return None
        given_up = {each for each, failures in state.failed_repairs.items() if failures >= REPAIR_ATTEMPTS}
        return next((each for each in event.degraded if each.segment_id not in given_up), None)

    def _repair_run(self, repair: DegradedSegment, total_turns: int, now: float) -> Run:
        cursor = self._state.memory.cursor
        return Run(
            id=RunId(f"{self._rng.getrandbits(64):016x}"),
            start=repair.start,
            end=repair.end,
            recent_start=Seq(cursor + eligible_turns(total_turns, cursor)),
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

    def _segment_made(self, event: SegmentMade) -> tuple[Effect, ...]:
        state = self._state
        run = state.current_run(event.run_id)
        if run is None:
            return ()
        memory = CompactionState(
            cursor=run.end if run.repairs is None else state.memory.cursor,
            revision=state.memory.revision + 1,
            summary=event.summary,
            last_at=event.at,
        )
        landing = Landing(
            session_id=event.segment.session_id,
            expected_cursor=state.memory.cursor,
            expected_revision=state.memory.revision,
            segment=event.segment,
            state=memory,
            folded_note_ids=run.note_ids,
            repairs=run.repairs is not None,
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
                )
            ),
        )

    def _run_failed(self, event: RunFailed, now: float) -> tuple[Effect, ...]:
        state = self._state
        run = state.current_run(event.run_id)
        if run is None:
            return ()
        if run.repairs is not None:
            self._state = transitions.fail_repair(state, run.id)
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
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000.0, 1)
