"""Runs the compaction of one session: `machine` decides what to do, and this module does it.

The compactor owns at most one task, the run in flight. Only `settle` and `end` wait for that task. A barge-in (a person
interrupting the bot) does not stop the task. `machine` makes all decisions: which turns are due, what a failure means,
and when to stop.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, assert_never

from compaction.errors import StoreError
from compaction.folding.event_reporter import EventReporter
from compaction.folding.failures import failure_of, refusal_of
from compaction.folding.fold_work import FoldWork, closing_segment, fold_started
from compaction.folding.ledger_view import LedgerView
from compaction.folding.signals import (
    AwaitRun,
    CancelRun,
    CheckRequested,
    DeadlinePassed,
    EmitEvent,
    EndingStored,
    EndRequested,
    FailureSource,
    FoldMade,
    LandingWritten,
    NoteAdded,
    NotesRetired,
    RunFailed,
    StartRun,
    StoreAhead,
    StoreNote,
    StorePendingNotes,
    WriteLanding,
)
from compaction.sentence_cache import clear_sentence_caches

if TYPE_CHECKING:
    from collections.abc import Callable

    import structlog

    from compaction.folding.events import CompactionEvent
    from compaction.folding.fold_parts import FoldParts
    from compaction.folding.fold_results import FoldResult
    from compaction.folding.signals import Signal
    from compaction.folding.state import Run, SessionState
    from compaction.model import CompactionState, Mode, Note, NoteId, RenderedSummary, Segment
    from compaction.ports import StoredMemory
    from compaction.summary.port import KnownFact

# How long to wait for a cancelled run. Only a summariser that ignores its cancellation takes this long.
_CANCEL_S = 1.0


class Compactor:
    """Folds the turns of one session. Not thread-safe.

    `view`: what is stored of the folded turns. `on_event`: called for each event; it must not block.

    *Ownership*: the session creates the compactor and calls `end` or `aclose`. Both stop the run in flight; `aclose`
    also waits for those that were cancelled before.
    """

    def __init__(
        self,
        parts: FoldParts,
        view: LedgerView,
        *,
        log: structlog.typing.FilteringBoundLogger,
        on_event: Callable[[CompactionEvent], None] | None,
    ) -> None:
        self._parts = parts
        self._view = view
        self._machine = parts.machine
        self._timeline = parts.timeline
        self._outbox = parts.outbox
        self._input = parts.input
        self._summarisers = parts.summarisers
        self._reporter = EventReporter(log, on_event)
        # The task of the newest run, and every task that has not ended: a run that was cancelled may still be ending
        # when the next one begins.
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        # One call of `end` at a time stores the end.
        self._ending = asyncio.Lock()
        # The model of the run in flight.
        self._model = ""
        self.external_changes = 0

    @property
    def state(self) -> SessionState:
        return self._machine.state

    @property
    def rendered(self) -> RenderedSummary | None:
        """Return the summary of all folded turns and notes, without what is withheld now."""
        self.update_withheld()
        return self._input.allowed(self._view).rendered

    @property
    def span(self) -> tuple[float, float] | None:
        """Return when the first and the last folded turn were said (UTC epoch seconds), or None if nothing has been
        folded.
        """
        return self._view.ledger.span

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments of all stored runs, in order."""
        return self._view.ledger.segments

    @property
    def known_facts(self) -> tuple[KnownFact, ...]:
        """Return the standing facts that a new batch may replace: the newest and the weightiest."""
        return self._view.ledger.known_facts()

    def set_mode(self, mode: Mode) -> None:
        """Change the mode. Turns are folded only in the mode `summary`."""
        self._machine.set_mode(mode)
        self._reporter.set_mode(mode)

    # -- called by the session --------------------------------------------------------------------------------

    def update_withheld(self) -> bool:
        """Take over who is withheld now; return whether anybody is. Called before anything goes to a model."""
        return self._parts.update_withheld()

    def check(self) -> None:
        """Start a run if one is due and the session is open, and return at once. Must be called while an event loop is
        running.
        """
        if self._closed:
            return
        try:
            # What is made again or next is made from what is folded, which may hold withheld words.
            self.update_withheld()
            allowed = self._input.allowed(self._view)
            self._handle(
                CheckRequested(
                    total_turns=self._timeline.total,
                    stored_turns=self._outbox.stored_turns,
                    degraded=allowed.degraded if self._summarisers.can_repair else (),
                    chapter=allowed.chapter if self._summarisers.makes_chapters else None,
                )
            )
        except Exception as exc:  # noqa: BLE001 - a reply must not fail because compaction has a bug
            self._reporter.warn("compaction_check_broke", exc)

    def add_note(self, note: Note) -> None:
        """Add a live note; the session's next flush stores it."""
        self._handle(NoteAdded(note))

    def retire_notes(self) -> None:
        """Make all live notes pending."""
        self._handle(NotesRetired())

    async def refresh(self) -> bool:
        """Adopt the stored state if somebody else changed it, for example by forgetting words. Returns whether it had
        changed.

        If the state had changed, the run in flight is cancelled, because the store would refuse its result. Raises
        StoreError.
        """
        stored, gone = await self._load_stored()
        if stored.state.revision <= self.state.memory.revision:
            return False
        view = await LedgerView.of_stored(stored)
        if stored.state.revision <= self.state.memory.revision:
            # Meanwhile a landing was refused, which has adopted it. The run in flight knows the stored state.
            return True
        overtaken = self.state.run
        self._adopt(stored, view, gone, overtaken=overtaken)
        if overtaken is not None and self._task is not None:
            self._task.cancel()
        return True

    async def settle(self) -> None:
        """Wait until no run is in flight or ending. *Cancellation*: cancelling `settle` does not stop the run."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def end(self) -> None:
        """End the session: wait for the run in flight until its deadline, then store the closing segment.

        Raises StoreError if the store fails. No new run starts after that, and `end` may be called again.
        """
        async with self._ending:
            if self.state.ended:
                return
            for effect in self._handle(EndRequested()):
                if isinstance(effect, AwaitRun):
                    await self._await_last_run(effect)
            await self._close()

    async def aclose(self) -> None:
        """Cancel every run that has not ended, and start no other. What they fold is folded when the session is opened
        again.

        A summariser that ignores its cancellation may still end its run, but no more follow it.
        """
        self._closed = True
        self._task = None
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CANCEL_S)

    # -- effects of the machine -------------------------------------------------------------------------

    def _handle(self, signal: Signal) -> tuple[WriteLanding | AwaitRun, ...]:
        """Handle a signal: carry out the immediate effects and return the effects that the caller has to await."""
        to_await: list[WriteLanding | AwaitRun] = []
        for effect in self._machine.handle(signal, self._parts.clock.monotonic()):
            match effect:
                case EmitEvent(event):
                    self._reporter.emit(event)
                case StartRun(run):
                    self._start(run)
                case StoreNote(note):
                    self._outbox.put_note(note)
                case StorePendingNotes(note_ids):
                    self._outbox.put_pending(note_ids)
                case CancelRun():
                    if self._task is not None:
                        self._task.cancel()
                case WriteLanding() | AwaitRun():
                    to_await.append(effect)
                case _:
                    assert_never(effect)
        return tuple(to_await)

    def _start(self, run: Run) -> None:
        self._model = ""
        try:
            summariser = self._summarisers.of(run, self._input.batch(run, self.state))
            self._model = summariser.model
            self._reporter.emit(fold_started(run, summariser))
            task = asyncio.create_task(self._run(run), name=f"compaction-{self._parts.session_id}-{run.id}")
            self._task = task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        except Exception as exc:  # noqa: BLE001 - a run that can't start has failed
            self._fail(run, FailureSource.CODE, exc)

    # -- one run ---------------------------------------------------------------------------------------------

    async def _run(self, run: Run) -> None:
        await self._fold_and_land(run)
        # There may be more to fold, or the fallback may have to take over after too many failures of the model.
        if not self.state.ending:
            self.check()

    async def _fold_and_land(self, run: Run) -> None:
        """Carry a run out. Whatever is raised fails the run, so that the next check may start another."""
        work = FoldWork(run, self._view, self._parts)
        try:
            await self._land(run, await work.make())
        except asyncio.CancelledError as exc:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this task: something inside the summariser or the store was cancelled.
            self._fail(run, work.culprit, exc)
        except Exception as exc:  # noqa: BLE001 - a bug anywhere in a fold fails the run, not the session
            self._fail(run, work.culprit, exc)

    async def _land(self, run: Run, result: FoldResult) -> None:
        """Store the result of a run and take it over."""
        made = FoldMade(run.id, result.record, result.summary, result.record.created_at)
        for effect in self._handle(made):
            if not isinstance(effect, WriteLanding):
                continue
            if not await self._outbox.land(effect.landing):
                # An earlier attempt landed and its answer was lost, or another process changed the session.
                stored, gone = await self._load_stored()
                self._adopt(stored, await LedgerView.of_stored(stored), gone, overtaken=run)
                return
            self._view = result.view
            self._handle(
                LandingWritten(
                    run.id,
                    prompt_tokens=result.prompt_tokens,
                    completion_tokens=result.completion_tokens,
                    by_model=result.by_model,
                )
            )
            self._timeline.release(self.state.memory.cursor)

    async def _load_stored(self) -> tuple[StoredMemory, frozenset[NoteId]]:
        """Return the stored session with every turn that is in memory, and the known notes that it has no more."""
        return await self._outbox.reload(self.state.notes, since=self._timeline.first)

    def _fail(self, run: Run, culprit: FailureSource, exc: BaseException) -> None:
        """Report that a run failed. Nothing more happens if it is not in flight any more."""
        failure = failure_of(exc, culprit, timeout_s=self._summarisers.timeout_s)
        if failure.unplanned:
            # Its text may hold what people said, so only its class is logged.
            name = "fold_broke" if culprit is FailureSource.CODE else "summariser_broke"
            self._reporter.warn(name, exc)
        self._handle(
            RunFailed(
                run_id=run.id,
                culprit=failure.culprit,
                error_class=type(exc).__name__,
                error=failure.error,
                timeout=failure.timeout,
                retryable=failure.retryable,
                model=self._model,
            )
        )

    def _adopt(
        self, stored: StoredMemory, view: LedgerView, gone: frozenset[NoteId], *, overtaken: Run | None = None
    ) -> None:
        """Continue from the stored state; `overtaken` is the run whose result it replaces.

        Cached copies of words are dropped, because the words may have been forgotten.
        """
        if overtaken is not None:
            self._fail(overtaken, FailureSource.STORE, refusal_of(stored, self.state.memory))
        self._handle(StoreAhead(stored.state, ended=stored.ended, gone=gone))
        clear_sentence_caches()
        self._input.forget_cached()
        self.external_changes += 1
        if self.state.memory.revision == stored.state.revision:
            self._view = view
            self._timeline.replace_turns(stored.window)
            self._timeline.release(self.state.memory.cursor)

    # -- the end ---------------------------------------------------------------------------------------------

    async def _await_last_run(self, effect: AwaitRun) -> None:
        task, run = self._task, self.state.run
        if task is None or run is None:
            return
        await asyncio.wait({task}, timeout=effect.seconds)
        in_flight = self.state.current_run(run.id)
        if in_flight is not None and in_flight.landing is not None:
            # The landing is being written, and the store's timeout limits how long that takes. If the write were
            # cancelled now, nobody would know whether the landing is stored.
            await asyncio.wait({task})
        if self.state.run is not None:
            self._handle(DeadlinePassed(model=self._model))
            await asyncio.wait({task}, timeout=_CANCEL_S)

    async def _close(self) -> None:
        try:
            await self._outbox.close(*await self._ending_state())
        except StoreError:
            stored, gone = await self._load_stored()
            known = self.state.memory
            if stored.ended:
                pass  # it was stored, and the answer was lost
            elif (stored.state.cursor, stored.state.revision) == (known.cursor, known.revision):
                raise
            else:
                self._adopt(stored, await LedgerView.of_stored(stored), gone)
                await self._outbox.close(*await self._ending_state())
        self._handle(EndingStored())

    async def _ending_state(self) -> tuple[Segment | None, CompactionState]:
        return await closing_segment(
            lambda: self._view, self._parts, on_defect=partial(self._reporter.warn, "fold_broke")
        )
