"""Folds the turns of one session, batch after batch, in at most one task: the run in flight.

A model gets the newest turns word for word, and what came before them as one short summary. The *cursor* is the border:
every turn before it is in the summary, every turn from it on is not. To *fold* is to move it: the ten oldest turns
outside the window, with the notes that wait, become a segment, and the summary is written anew with it.

Three rules make that safe beside a talk that does not wait:

- **The cursor moves only with a stored segment.** A run takes its batch, asks the summariser, and *lands*: one write to
  the store has the segment, the new summary and the new cursor, under the condition that cursor and revision are still
  those from which the run began. If anything fails before that, nothing has changed, and the same turns are folded
  later. So no turn is lost, and none is folded twice.
- **There is one run at a time.** `check` is called before every answer, and by turns and notes once many wait. It
  returns at once. It begins a run if one is due (`window.next_batch`) and none is in flight. Nobody who speaks waits
  for a run, and somebody who interrupts the bot does not stop one. Only `settle` and `end` wait.
- **The store may know more.** Another process, or somebody who had words forgotten, changes the session while a run is
  in flight. Then the landing is refused, the run counts as failed, and what the store has is adopted. Copies of words
  in memory go with that, because nobody can tell which of them were forgotten.

A run that fails is tried again after a pause that grows. A model whose answers are no summary gets three tries with a
batch; then the batch is folded by quotes, without a model, so that the cursor moves on in the end. What people do not
want to be used is left out of every request (`withheld`), and a run during which that changed is thrown away.

A session that ends waits for its last run until a deadline, and keeps what was not folded as quotes, in a closing
segment. One that is only closed folds the rest when it is opened again.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from math import inf, nextafter
from typing import TYPE_CHECKING

from compaction.errors import CompletionError, RequestTooLongError, StoreError, SummaryRefusedError
from compaction.events import CompactionEvent, EventReporter, Run, RunFailed, is_defect
from compaction.log_events import MemoryEvent
from compaction.memory.chapters import REQUEST_TOKENS, Chapter, chapters_of, tell_chapters
from compaction.model import CompactionState, Mode, Note, NoteId, RunId, Segment, Seq, SessionId, TurnKind
from compaction.notes import NoteBuffer
from compaction.ports import Landing, SessionClock, StoredMemory
from compaction.sentence_cache import clear_sentence_caches
from compaction.store_queue import DroppedNotes, StoreQueue
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.folded import closing_segment, fold_request, make_segment, summary_of
from compaction.summary.port import NOTHING_KEPT, REACH_TURNS, Fold, FoldRequest, Summariser
from compaction.window import Skip, Waiting, backoff_s, next_batch
from compaction.withheld import WithheldPeople, has_content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    import structlog

    from compaction.turn_buffer import TurnBuffer

# How long a run in flight may take when its session ends.
ENDING_DEADLINE_S = 3.0
# How long to wait for a cancelled run. Only a summariser that ignores its cancellation takes this long.
_CANCEL_S = 1.0
# After so many unusable answers about a batch it is folded by quotes: what this model makes of it will not get better.
MOST_REFUSED = 3


class Compactor:
    """Folds the turns of one session. Not thread-safe.

    `stored`: what is stored of the session; `buffer`, `store_queue` and `withheld` were made of it. `timeout_s`: of one
    fold. `rng`: for jitter and the names of runs. `on_event`: called for each event; it must not block.

    *Ownership*: the session creates the compactor and calls `end` or `aclose`. Both stop the run in flight.
    """

    def __init__(
        self,
        session_id: SessionId,
        stored: StoredMemory,
        summariser: Summariser,
        *,
        buffer: TurnBuffer,
        store_queue: StoreQueue,
        withheld: WithheldPeople,
        timeout_s: float,
        mode: Mode,
        clock: SessionClock,
        rng: Random,
        log: structlog.typing.FilteringBoundLogger,
        on_event: Callable[[CompactionEvent], None] | None,
    ) -> None:
        self._session_id = session_id
        self._buffer = buffer
        self._store_queue = store_queue
        self._withheld = withheld
        self._state = replace(stored.state, pending_notes=())
        # Of all stored runs, in order.
        self.segments = stored.segments
        self._summariser = summariser
        self._timeout_s = timeout_s
        self._mode = mode
        self._clock = clock
        self._rng = rng
        self._reporter = EventReporter(log, on_event)
        self._run: Run | None = None
        # Set while the store writes what the run made: if the write were cancelled, nobody would know its outcome.
        self._landing = False
        # Folds batch after batch until none is due. No other begins while one that was cancelled is still ending.
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        # Why the newest run failed; None once one has landed.
        self.failure: RunFailed | None = None
        # How many of them were answers that are no summary, or requests that the model cannot take.
        self._refused = 0
        self._hold_until = -inf
        # The pending notes for which the last run had no room. They begin no run of their own.
        self._passed_over: frozenset[NoteId] = frozenset()
        self._closed = False
        # One call of `end` at a time stores the end.
        self._ending_lock = asyncio.Lock()
        self.notes = NoteBuffer(stored.live_notes, stored.state.pending_notes)
        self.ending = False
        self.ended = False
        # Told each time that somebody else has changed the session.
        self.on_change: Callable[[], object] = bool
        self.unsourced = 0
        # What was forgotten while it waited for the store goes at once.
        self._store_queue.on_turn_changed = lambda turn: self._buffer.replace_turns((turn,))
        self._store_queue.on_note_left_out = self._drop_note
        # The last process may have ended between the storing of a note and of what that made pending.
        self._change_notes(self.notes.with_few_live())

    # -- state ---------------------------------------------------------------------------------------------

    @property
    def state(self) -> CompactionState:
        """Return the state that is kept across restarts."""
        return replace(self._state, pending_notes=self.notes.pending)

    @property
    def cursor(self) -> Seq:
        return self._state.cursor

    @property
    def summary(self) -> str | None:
        """Return the summary of all folded turns and notes, without what is withheld now."""
        return summary_of(self._allowed(), newest=self._newest)

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        """Return the chapters of all folded turns, without what is withheld now."""
        return chapters_of(self._allowed())

    def set_mode(self, mode: Mode) -> None:
        """Change the mode. Turns are folded only in the mode `summary`."""
        self._mode = mode
        self._reporter.log = self._reporter.log.bind(compaction_mode=mode.value)

    def update_withheld(self) -> None:
        """Take over who is withheld now. Called before anything goes to a model."""
        folded_until = self.cursor if self._run is None else max(self._run.batch.end, self.cursor)
        self._withheld.update(
            said_until=Seq(self._buffer.total),
            folded_until=Seq(folded_until),
            landed_at=-inf if self._state.last_at is None else self._state.last_at,
        )

    @property
    def _newest(self) -> Segment | None:
        return self.segments[-1] if self.segments else None

    def _allowed(self) -> Sequence[Segment]:
        self.update_withheld()
        return self._withheld.segments(self.segments)

    def add_note(self, note: Note) -> None:
        """Add a live note; the session's next flush stores it."""
        after = self.notes.with_note(note)
        if after is not self.notes:
            self._store_queue.put(note)
            self._change_notes(after)

    def retire_notes(self) -> None:
        """Make all live notes pending."""
        self._change_notes(self.notes.with_all_pending())

    def _drop_note(self, note_id: NoteId) -> None:
        self.notes = self.notes.without({note_id})

    def _change_notes(self, after: NoteBuffer) -> None:
        before = self.notes
        self.notes, fallen_out = after.within_bound()
        if note_ids := after.newly_pending(before):
            self._store_queue.put(note_ids)
        if fallen_out:
            self._store_queue.put(DroppedNotes(fallen_out))
            # Too many others wait.
            self._reporter.log.info(MemoryEvent.NOTES_DROPPED, count=len(fallen_out), note_ids=list(fallen_out))

    # -- one run -------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Start a run if one is due and the session is open, and return at once. Takes a running event loop."""
        if self._closed:
            return
        run = self._next_run(in_flight=self._task is not None and not self._task.done())
        if run is not None:
            self._task = asyncio.create_task(self._work(run), name=f"compaction-{self._session_id}-{run.id}")

    async def _work(self, run: Run | None) -> None:
        while run is not None:
            await self._carry_out(run)
            run = None if self.ending else self._next_run(in_flight=False)

    def _next_run(self, *, in_flight: bool) -> Run | None:
        """Return the run that is due, as the one in flight; None if none is due."""
        due = next_batch(
            Waiting(
                self._buffer.total,
                self.cursor,
                stored_turns=self._store_queue.stored_turns,
                pending_notes=sum(note.id not in self._passed_over for note in self.notes.pending),
            ),
            in_flight=in_flight,
            ending=self.ending,
            enabled=self._mode is Mode.SUMMARY,
            backing_off=self._clock.monotonic() < self._hold_until,
        )
        if isinstance(due, Skip):
            self._reporter.skip(
                due.reason,
                self._run,
                cursor=self.cursor,
                total_turns=self._buffer.total,
                pending=len(self.notes.pending),
            )
            return None
        run_id = RunId(f"{self._rng.getrandbits(64):016x}")
        run = self._run = Run(run_id, due, self.notes.pending, self._failures + 1, self._clock.monotonic())
        self._reporter.emit(run.started(summariser=self._summariser.name, model=self._summariser.model))
        return run

    async def _carry_out(self, run: Run) -> None:
        """Fold and land. Whatever is raised fails the run, so that a later check may start another."""
        try:
            # While the store takes nothing, the result could not be stored either.
            await self._store_queue.flush()
            request = self._request(run.batch.start, run.batch.end, run.notes)
            changes = self._withheld.changes
            fold = await self._fold(request)
            self.update_withheld()
            if self._withheld.changes != changes:
                raise SummaryRefusedError(
                    "While I wrote the summary, somebody used /opt-out or /opt-in. I write it again."
                )
            await self._land(run, request, fold)
        except asyncio.CancelledError as exc:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this task: something inside the summariser or the store was cancelled.
            self._fail(run, exc)
        except Exception as exc:  # noqa: BLE001 - a bug anywhere in a fold fails the run, not the session
            self._fail(run, exc)

    def _request(self, start: Seq, end: Seq, notes: Sequence[Note]) -> FoldRequest:
        """Return the request for turns `start <= seq < end`, as far as a model may be told of them."""
        segments = self._allowed()
        before = self._buffer.between(Seq(max(self._buffer.first, start - REACH_TURNS)), start)
        return fold_request(
            start,
            tuple(map(self._withheld.turn, self._buffer.between(start, end))),
            tuple(map(self._withheld.note, notes)),
            tuple(map(self._withheld.turn, before)),
            segments,
            newest=self._newest,
            chapters=[text for _, text in tell_chapters(chapters_of(segments), max_tokens=REQUEST_TOKENS)],
        )

    async def _fold(self, request: FoldRequest) -> Fold:
        if not has_content(request.turns, request.notes):
            # There is nothing that a model may be told.
            paragraph = request.previous or summary_of(self._allowed(), newest=self._newest) or NOTHING_KEPT
            return Fold(NOTHING_KEPT, (), paragraph, "")
        if self._refused >= MOST_REFUSED:
            return await ExtractiveSummariser().fold(request)
        async with asyncio.timeout(self._timeout_s):
            return await self._summariser.fold(request)

    async def _land(self, run: Run, request: FoldRequest, fold: Fold) -> None:
        """Store the result of a run and take it over. Nothing happens if the run is not in flight any more."""
        if self._run is not run:
            return
        before = self._state
        segment = make_segment(
            request, fold, session_id=self._session_id, revision=before.revision, at=self._record_time()
        )
        after = CompactionState(run.batch.end, before.revision + 1, fold.paragraph, segment.created_at)
        landing = Landing(self._session_id, before.cursor, before.revision, segment, after)
        self._landing = True
        try:
            landed = await self._store_queue.land(landing)
        finally:
            self._landing = False
        if not landed:
            # An earlier attempt landed and its answer was lost, or another process changed the session.
            stored, gone = await self._store_queue.reload(self.notes, since=self._buffer.first)
            self._adopt(stored, gone, overtaken=run)
            return
        if self._run is not run:
            return
        self._run = None
        self._state = after
        self.segments = (*self.segments, segment)
        self.notes = self.notes.without(segment.note_ids)
        self._passed_over = frozenset(note.id for note in run.notes).difference(segment.note_ids)
        self._failures, self._refused, self._hold_until, self.failure = 0, 0, -inf, None
        self.unsourced += fold.unsourced
        self._buffer.release(self.cursor)
        if fold.flaws:
            self._reporter.log.warning(MemoryEvent.FOLD_FLAWED, run_id=run.id, reason=list(fold.flaws))
        event = run.landed(
            before,
            after,
            folded_notes=len(segment.note_ids),
            prompt_tokens=fold.prompt_tokens,
            completion_tokens=fold.completion_tokens,
            unsourced=fold.unsourced,
            now=self._clock.monotonic(),
        )
        self._reporter.emit(event)

    def _record_time(self) -> float:
        """Return now (UTC epoch seconds), but always later than the last landing, even if the clock was set back."""
        last = self._state.last_at
        return self._clock.now() if last is None else max(self._clock.now(), nextafter(last, inf))

    def _fail(self, run: Run, exc: BaseException) -> None:
        """Report that a run failed. Nothing more happens if it is not in flight any more."""
        if self._run is not run:
            return
        if is_defect(exc):
            # Its text may hold what people said, so the event does not tell it.
            self._reporter.warn(MemoryEvent.FOLD_BROKE, exc)
        self._run = None
        self._failures += 1
        self._refused += isinstance(exc, (SummaryRefusedError, RequestTooLongError))
        pause_s = backoff_s(self._failures, self._rng.random())
        now = self._clock.monotonic()
        self._hold_until = now + pause_s
        self.failure = run.failed(
            exc,
            model=self._summariser.model,
            within_s=self._timeout_s,
            pending=len(self.notes.pending),
            next_retry_s=None if self.ending else pause_s,
            now=now,
        )
        self._reporter.emit(self.failure)

    # -- changes by others ---------------------------------------------------------------------------------

    async def refresh(self) -> bool:
        """Adopt the stored state if somebody else changed it, for example by forgetting words; return whether it had.

        The run in flight is cancelled then, because the store would refuse its result. Raises StoreError.
        """
        stored, gone = await self._store_queue.reload(self.notes, since=self._buffer.first)
        if stored.state.revision <= self._state.revision:
            return False
        overtaken = self._run
        self._adopt(stored, gone, overtaken=overtaken)
        if overtaken is not None and self._task is not None:
            self._task.cancel()
        return True

    def _adopt(self, stored: StoredMemory, gone: frozenset[NoteId], *, overtaken: Run | None = None) -> None:
        """Continue from the stored state; `overtaken` is the run whose result it replaces. The cursor never goes back.

        Copies of words are dropped, because the words may have been forgotten.
        """
        if overtaken is not None:
            self._fail(overtaken, StoreError("The store has a newer version of this session. I go on with that one."))
        clear_sentence_caches()
        self._store_queue.withdraw_replies()
        if stored.state.revision >= self._state.revision and stored.state.cursor >= self.cursor:
            self._take(stored, gone)
        self.on_change()

    def _take(self, stored: StoredMemory, gone: frozenset[NoteId]) -> None:
        self._state = replace(stored.state, pending_notes=())
        self.segments = stored.segments
        self.notes = self.notes.without(gone)
        # What is stored goes on from here, whoever stored it.
        self.failure = None
        self.ending, self.ended = self.ending or stored.ended, self.ended or stored.ended
        self._buffer.replace_turns(stored.window)
        # Replies that came while it was read were made of the words as they were.
        self._buffer.replace_turns(
            turn.without_words()
            for turn in self._buffer.since(self._buffer.first)
            if turn.seq >= stored.total_turns and turn.kind is TurnKind.ASSISTANT
        )
        self._buffer.release(self.cursor)

    # -- the end -------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Wait until no run is in flight or ending. *Cancellation*: cancelling `settle` does not stop the run."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def end(self) -> None:
        """End the session: wait for the run in flight until its deadline, then store the closing segment.

        Raises StoreError if the store fails. No new run starts after that, and `end` may be called again.
        """
        async with self._ending_lock:
            if self.ended:
                return
            self.ending = True
            await self._await_last_run()
            # The answer to a landing may be lost, or words forgotten meanwhile.
            await self.refresh()
            await self._store_end()
            self.ended = True

    async def aclose(self) -> None:
        """Cancel the run in flight, and start no other. What it folds is folded when the session is opened again.

        A summariser that ignores its cancellation may still end its run, but no more follow it.
        """
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_CANCEL_S)

    async def _await_last_run(self) -> None:
        task, run = self._task, self._run
        if task is None or run is None:
            return
        await asyncio.wait({task}, timeout=ENDING_DEADLINE_S)
        if self._landing:
            # The store's timeout limits how long that takes.
            await asyncio.wait({task})
        if self._run is run:
            # Its answer is ignored from now on.
            late = CompletionError("The session ended before the summary came.", retryable=False, timeout=True)
            self._fail(run, late)
            task.cancel()
            await asyncio.wait({task}, timeout=_CANCEL_S)

    async def _store_end(self) -> None:
        segment: Segment | None = None
        try:
            # Its quotes are made at once, without a model, so nothing changes meanwhile.
            start = max(self.cursor, self._buffer.first)
            request = self._request(start, Seq(self._buffer.total), (*self.notes.pending, *self.notes.live))
            segment = closing_segment(request, session_id=self._session_id, at=self._record_time())
        except Exception as exc:  # noqa: BLE001 - whatever a bug raises must not keep the session open
            self._reporter.warn(MemoryEvent.FOLD_BROKE, exc)
        await self._store_queue.close(segment, self.state)
