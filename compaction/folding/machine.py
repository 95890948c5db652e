"""Decides what a session's compaction does next: `handle(signal, now)` changes the state and returns effects.

The machine never awaits, logs or reads a clock. `compactor` carries out the effects and reports the results as signals.
Times are monotonic seconds. At most one run is in flight, and answers of any other run are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never

from compaction.folding import state as transitions
from compaction.folding.events import FoldFailed, FoldLanded, FoldSkipped
from compaction.folding.next_run import next_run
from compaction.folding.signals import (
    AwaitRun,
    CancelRun,
    CheckRequested,
    DeadlinePassed,
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
from compaction.folding.skip_reports import SkipReports
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW, Skip, eligible_turns
from compaction.model import Chapter, CompactionState, RunId, Segment, has_model_paragraph
from compaction.ports import Landing

if TYPE_CHECKING:
    from random import Random

    from compaction.folding.state import Run, SessionState
    from compaction.folding.window import SkipReason
    from compaction.model import Mode, Note
    from compaction.settings import CompactionSettings

THRESHOLD = RECENT_WINDOW + BATCH_SIZE


class FoldingMachine:
    """Makes the compaction decisions of one session. Not thread-safe; owned by one compactor."""

    def __init__(self, state: SessionState, *, mode: Mode, settings: CompactionSettings, rng: Random) -> None:
        self._state = state
        self._mode = mode
        self._settings = settings
        self._rng = rng
        self._skips = SkipReports()

    @property
    def state(self) -> SessionState:
        return self._state

    def set_mode(self, mode: Mode) -> None:
        """Change the mode. The result of a run in flight is still stored."""
        self._mode = mode

    def handle(self, signal: Signal, now: float) -> tuple[Effect, ...]:
        """Handle one signal. Returns the effects in the order in which to carry them out. `now`: monotonic seconds."""
        match signal:
            case CheckRequested():
                return self._check(signal, now)
            case FoldMade():
                return self._fold_made(signal)
            case LandingWritten():
                return self._landing_written(signal, now)
            case StoreAhead():
                self._state = transitions.adopt_stored(self._state, signal.stored, ended=signal.ended, gone=signal.gone)
                return ()
            case RunFailed():
                return self._run_failed(signal, now)
            case NoteAdded():
                return self._note_added(signal.note)
            case NotesRetired():
                return self._notes_retired()
            case EndRequested():
                return self._end_requested()
            case DeadlinePassed():
                return self._deadline_passed(signal, now)
            case EndingStored():
                self._state = transitions.finish_ending(self._state)
                return ()
            case _:
                assert_never(signal)

    # -- the trigger -----------------------------------------------------------------------------------------

    def _check(self, signal: CheckRequested, now: float) -> tuple[Effect, ...]:
        due = next_run(self._state, signal, mode=self._mode, now=now, new_id=self._run_id)
        if isinstance(due, Skip):
            return self._skips.report(self._skipped(due.reason, signal.total_turns))
        self._state = transitions.begin_run(self._state, due)
        return (*self._skips.flush(), StartRun(due))

    def _run_id(self) -> RunId:
        return RunId(f"{self._rng.getrandbits(64):016x}")

    def _skipped(self, reason: SkipReason, total_turns: int) -> FoldSkipped:
        state = self._state
        return FoldSkipped(
            run_id=None if state.run is None else state.run.id,
            reason=reason,
            cursor=state.memory.cursor,
            total_turns=total_turns,
            eligible_count=eligible_turns(total_turns, state.memory.cursor),
            threshold=THRESHOLD,
            pending_note_count=len(state.notes.pending),
            repeated=0,
        )

    # -- the run in flight -----------------------------------------------------------------------------------------

    def _fold_made(self, signal: FoldMade) -> tuple[Effect, ...]:
        state = self._state
        run = state.current_run(signal.run_id)
        if run is None:
            return ()
        memory = CompactionState(
            cursor=state.memory.cursor if run.moves_cursor_to is None else run.moves_cursor_to,
            revision=state.memory.revision + 1,
            summary=signal.summary,
            last_at=signal.at,
        )
        landing = Landing(
            session_id=signal.record.session_id,
            expected_cursor=state.memory.cursor,
            expected_revision=state.memory.revision,
            segment=signal.record if isinstance(signal.record, Segment) else None,
            state=memory,
            folded_note_ids=run.note_ids,
            repairs=run.repairs is not None,
            chapter=signal.record if isinstance(signal.record, Chapter) else None,
        )
        self._state = transitions.await_landing(state, run.id, landing)
        return (WriteLanding(run.id, landing),)

    def _landing_written(self, signal: LandingWritten, now: float) -> tuple[Effect, ...]:
        run = self._state.current_run(signal.run_id)
        if run is None or run.landing is None:
            return ()
        self._state = transitions.land_run(self._state, run.id, by_model=signal.by_model)
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
                    prompt_tokens=signal.prompt_tokens,
                    completion_tokens=signal.completion_tokens,
                    folded_note_count=len(run.note_ids),
                    degraded=run.degraded,
                    repairs=run.repairs,
                    chapter_level=run.chapter_level,
                    paragraph_by=_paragraph_by(run, record),
                    paragraph_problem=record.paragraph_problem,
                )
            ),
        )

    def _run_failed(self, signal: RunFailed, now: float) -> tuple[Effect, ...]:
        state = self._state
        run = state.current_run(signal.run_id)
        if run is None:
            return ()
        by_model = signal.culprit is FailureSource.MODEL
        next_retry_s: float | None = None
        if run.repairs is not None:
            # Turns that are gone for good can't be folded again either.
            self._state = transitions.fail_repair(state, run.id, counts=by_model or not signal.retryable)
        elif run.chapter is not None:
            self._state = transitions.fail_chapter(state, run.id, by_model=by_model)
        else:
            next_retry_s = self._fail_batch(state, run.id, by_model=by_model, retryable=signal.retryable, now=now)
        return (EmitEvent(_failure(signal, run, state, now, None if state.ending else next_retry_s)),)

    def _fail_batch(self, state: SessionState, run_id: RunId, *, by_model: bool, retryable: bool, now: float) -> float:
        """Take note that the run of a batch failed. Return after how many seconds it, or the model, is tried again."""
        most = self._settings.failures_before_degraded
        model_failures = state.model_failures + by_model
        if by_model and not retryable:
            # Such an error, a wrong API key for example, will not go away, so the fallback takes over at once.
            model_failures = max(model_failures, most)
        hold_until: float | None = None
        rest_until = state.model_rest_until
        if by_model and model_failures >= most:
            # The fallback takes over immediately. The model is tried again after the pause.
            pause_s = self._pause_s(model_failures)
            rest_until = now + pause_s
        else:
            pause_s = self._pause_s(state.failures + 1)
            hold_until = now + pause_s
        self._state = transitions.fail_run(
            state, run_id, model_failures=model_failures, hold_until=hold_until, model_rest_until=rest_until
        )
        return pause_s

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

    def _deadline_passed(self, signal: DeadlinePassed, now: float) -> tuple[Effect, ...]:
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
            model=signal.model,
        )
        return (CancelRun(run.id), EmitEvent(_failure(late, run, state, now, None)))


def _failure(signal: RunFailed, run: Run, state: SessionState, now: float, next_retry_s: float | None) -> FoldFailed:
    return FoldFailed(
        run_id=run.id,
        cursor=state.memory.cursor,
        batch_size=run.batch_size,
        pending_note_count=len(state.notes.pending),
        model=signal.model,
        error_class=signal.error_class,
        error=signal.error,
        timeout=signal.timeout,
        retryable=signal.retryable,
        attempt=run.attempt,
        next_retry_s=next_retry_s,
        latency_ms=_ms(now - run.started_at),
        repairs=run.repairs,
        chapter_level=run.chapter_level,
    )


def _paragraph_by(run: Run, record: Segment | Chapter) -> Literal["model", "code", "nobody"]:
    if run.repairs:
        return "nobody"
    return "model" if has_model_paragraph(record) else "code"


def _ms(seconds: float) -> float:
    return round(seconds * 1000.0, 1)
