"""The timeline of one session, which callers of this package use. Turns and notes go in, a model's context comes out.

    async with SessionTimeline.open(session_id, store=store, …) as timeline:
        turn = await timeline.append(TurnKind.SPEECH, parts, started_at=…, ended_at=…)
        context = timeline.context(current=turn, max_input_tokens=budget.max_input_tokens)

Turns and notes are stored when they arrive. Leaving the block stops the run in flight but does not end the session, so
the session can be opened again. `end` ends the session.

What a model is sent word for word depends on the mode. In `off` the window is the last turns, in `summary` all that are
not folded. In `rolling` the oldest of those are evicted when they no longer fit, or when nobody has asked for so long
that there are too many. `compactor` makes the summary, and `context` makes messages of both.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import structlog

from compaction.compactor import Compactor
from compaction.context.build import SessionContext, eviction_of, left_out_turns, summarize_eviction
from compaction.errors import SessionEndedError, StaleOwnerError, StoreError
from compaction.log_events import MemoryEvent
from compaction.model import CompactionState, Mode, Note, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import PayloadPart, context_built_fields
from compaction.speaker_names import SpeakerNames
from compaction.store_queue import StoreQueue
from compaction.summary.folded import span_of
from compaction.summary.port import FOLD_TIMEOUT_S, Summariser
from compaction.turn_buffer import TurnBuffer
from compaction.window import PENDING_NOTES_RUN, RECENT_WINDOW
from compaction.withheld import WithheldPeople

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from compaction.budget.eviction_note import EvictedTurns
    from compaction.events import CompactionEvent, RunFailed
    from compaction.memory.chapters import Chapter
    from compaction.ports import SessionClock, TurnStore

# Normally building a context starts runs, but a bot that never speaks builds no context. If there are more unfolded
# turns than this, each new turn also checks whether a batch is due.
SILENT_BACKLOG = 200
# In the rolling mode, turns are evicted when the bot is about to speak. While the bot is silent, older turns are
# evicted once there are more turns than this, which is more than any model is sent at once.
ROLLING_TURNS = 2_000


class SessionTimeline:
    """The turns, notes, compaction and context of one session. Created by `open`; not thread-safe.

    `mode`: the one that is used. It differs from the requested one if that needs memory search and there is none.
    *Ownership*: owns the run in flight and stops it when the block of `open` is left.
    """

    def __init__(
        self,
        session_id: SessionId,
        compactor: Compactor,
        *,
        buffer: TurnBuffer,
        store_queue: StoreQueue,
        names: SpeakerNames,
        withheld: WithheldPeople,
        mode: Mode,
        requested_mode: Mode,
        searchable: bool,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self.session_id = session_id
        self.compactor = compactor
        self._buffer = buffer
        self.store_queue = store_queue
        self._names = names
        self._withheld = withheld
        self.mode = mode
        self._requested_mode = requested_mode
        self._searchable = searchable
        # What was evicted so far; None outside the rolling mode.
        self._evicted: EvictedTurns | None = None
        self._log = log

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        session_id: SessionId,
        *,
        store: TurnStore,
        summariser: Summariser,
        mode: Mode,
        clock: SessionClock,
        timeout_s: float = FOLD_TIMEOUT_S,
        log: structlog.typing.FilteringBoundLogger | None = None,
        guild_id: str = "",
        rng: Random | None = None,
        on_event: Callable[[CompactionEvent], None] | None = None,
        searchable: bool = False,
    ) -> AsyncIterator[SessionTimeline]:
        """Open a new or stored session, and close it when the block is left.

        `timeout_s`: how long a fold may take. `on_event` is called for each compaction event and must not block.
        `searchable`: there is memory search. Without it, evicted turns could not be found again, so the mode `summary`
        is used instead of the rolling mode. Turns that the store has lost are logged and left out.
        Raises StoreError if the stored session can't be read, and SessionEndedError if the session has ended.
        """
        log = (structlog.get_logger() if log is None else log).bind(session_id=session_id, guild_id=guild_id)
        requested_mode, mode = mode, effective_mode(mode, log, searchable=searchable)
        log = log.bind(compaction_mode=mode.value)
        store_queue = StoreQueue(store, session_id)
        stored = await store_queue.load()
        if stored.ended:
            raise SessionEndedError(f"Session {session_id} has ended; open a new one.")
        store_queue.stored_turns = stored.total_turns
        buffer, missing = TurnBuffer.restored(stored.window, first=stored.state.cursor, total=stored.total_turns)
        if missing:
            log.error(MemoryEvent.TURNS_MISSING, first_seq=missing[0], count=len(missing))
        withheld = WithheldPeople(dict(stored.speakers), stored.quotable)
        compactor = Compactor(
            session_id,
            stored,
            summariser,
            buffer=buffer,
            store_queue=store_queue,
            withheld=withheld,
            timeout_s=timeout_s,
            mode=mode,
            clock=clock,
            rng=Random() if rng is None else rng,  # noqa: S311 - jitter and names of runs, no secret
            log=log,
            on_event=on_event,
        )
        timeline = cls(
            session_id,
            compactor,
            buffer=buffer,
            store_queue=store_queue,
            names=SpeakerNames(stored.speakers),
            withheld=withheld,
            mode=mode,
            requested_mode=requested_mode,
            searchable=searchable,
            log=log,
        )
        try:
            yield timeline
        finally:
            await timeline._close()

    # -- input ----------------------------------------------------------------------------

    def name_of(self, speaker_id: str, display_name: str) -> str:
        """Return the name that stands for this person in the session's turns: plain, and nobody else's."""
        return self._names.name_of(speaker_id, display_name)

    async def append(
        self,
        kind: TurnKind,
        parts: Sequence[TurnPart],
        *,
        started_at: float,
        ended_at: float,
        answers: Seq | None = None,
        called: bool = False,
        told_to: tuple[str, ...] = (),
        sources: tuple[str, ...] = (),
    ) -> Turn:
        """Add one turn and store it. Turns are numbered in the order of the calls. Times: UTC epoch seconds.

        `parts`: none: its words may not be kept. `answers`, `called`, `told_to`, `sources`: see `Turn`.

        Returns the turn as it is stored: without what was forgotten while it waited.

        Raises StoreError if the store fails; at once if it has failed slowly just before. The turn is then kept in
        memory and stored with a later write. Raises SessionEndedError once the session is ending, and StaleOwnerError
        if another process has taken it over. *Cancellation*: has the same effect as StoreError.
        """
        self._refuse_after_end()
        turn = Turn(
            Seq(self._buffer.total),
            kind,
            started_at,
            ended_at,
            tuple(replace(part, speaker=self.name_of(part.speaker_id, part.speaker)) for part in parts),
            tombstone=not parts,
            answers=answers,
            called=called,
            told_to=told_to if parts else (),
            sources=sources if parts else (),
        )
        self._buffer.append(turn)
        self._withheld.note_turn(turn)
        self._make_room()
        self.store_queue.put(turn)
        await self.store_queue.flush_promptly()
        if self._buffer.total - self.compactor.cursor > SILENT_BACKLOG:
            self.compactor.check()
        return self.turn(turn.seq)

    async def add_note(self, note: Note) -> None:
        """Add and store one note about a shared screen. Raises the same errors as `append`."""
        self._refuse_after_end()
        self._withheld.note_screen(note, next_turn=Seq(self._buffer.total))
        self.compactor.add_note(note)
        await self.store_queue.flush_promptly()
        if len(self.compactor.notes.pending) >= PENDING_NOTES_RUN:
            # People who watch in silence add no turns, and the bot may never speak.
            self.compactor.check()

    async def retire_live_notes(self) -> None:
        """Make all live notes pending, because the screen share ended. Raises the same errors as `append`."""
        self._refuse_after_end()
        self.compactor.retire_notes()
        await self.store_queue.flush_promptly()

    # -- context for a model --------------------------------------------------------------------------------

    def numbered(self, turn: Turn) -> Turn:
        """Return a turn with the number that it is recorded under; with the next one if it is not recorded yet.

        A turn that was made before it is recorded has the number that was next then. Others may have got that since.
        """
        since = Seq(max(turn.seq, self._buffer.first))
        same = (each.seq for each in self._buffer.since(since) if (each.kind, each.parts) == (turn.kind, turn.parts))
        return replace(turn, seq=next(same, Seq(self._buffer.total)))

    def context(self, *, current: Turn | None = None, max_input_tokens: int) -> SessionContext:
        """Return the session's context. If a batch is due, start folding it in the background. Never waits.

        `current`: the turn that is being answered, `numbered`. It is left out of the context's `window`.
        """
        self.compactor.check()
        state = self.compactor.state
        window = self.window
        if current is not None:
            window = tuple(turn for turn in window if turn.seq != current.seq)
            # It is one of the last turns, also if it is not recorded yet.
            window = window[1 - RECENT_WINDOW :] if self.mode is Mode.OFF else window
        shown = self.mode is not Mode.OFF
        span = span_of(self.compactor.segments) if shown else None
        return SessionContext(
            mode=self.mode,
            cursor=state.cursor,
            summary=self.compactor.summary if shown else None,
            summary_revision=state.revision,
            chapters=self.chapters,
            summary_started_at=None if span is None else span[0],
            summary_ended_at=None if span is None else span[1],
            window=window,
            live_notes=self.live_notes,
            current=None if current is None else self._withheld.turn(current),
            max_input_tokens=max_input_tokens,
            evicted=self._evicted,
        )

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        """Return the chapters that a model may be told of, oldest first."""
        return self.compactor.chapters if self.mode is not Mode.OFF else ()

    def record_sent(
        self,
        context: SessionContext,
        payload: Sequence[PayloadPart],
        *,
        answer_to: Seq | None = None,
    ) -> None:
        """Log that `payload`, which was built from `context`, is sent to a model. In the rolling mode, evict the
        left-out turns.

        `answer_to`: the turn that is answered, if the context has no current turn.
        """
        if context.mode is Mode.ROLLING and (gone := left_out_turns(context, payload)):
            self._evict(gone, context.evicted, kept=[turn for turn in context.window if turn.seq > gone[-1].seq])
        self._log.info(
            MemoryEvent.CONTEXT_BUILT,
            **context_built_fields(
                payload,
                summary_revision=context.summary_revision,
                cursor=context.cursor,
                max_input_tokens=context.max_input_tokens,
                answer_to=answer_to,
            ),
        )

    def _make_room(self) -> None:
        """Drop from memory what no context needs any more. Called after each new turn, before it is stored."""
        if self.mode is Mode.ROLLING and len(window := self.window) > ROLLING_TURNS:
            half = len(window) - ROLLING_TURNS // 2
            self._evict(window[:half], self._evicted, kept=window[half:])
        self._buffer.release(self._needed_from())

    @property
    def _evicted_until(self) -> Seq:
        return Seq(0) if self._evicted is None else self._evicted.until

    def _needed_from(self) -> Seq:
        """Return the first turn that must stay in memory."""
        stored = self.store_queue.stored_turns
        if self.mode is Mode.OFF:
            # In this mode nothing is folded, and nothing older than the window is sent.
            return Seq(max(0, min(stored, self._buffer.total - RECENT_WINDOW)))
        return Seq(max(self.compactor.cursor, min(stored, self._evicted_until)))

    def _evict(self, gone: Sequence[Turn], before: EvictedTurns | None, *, kept: Sequence[Turn]) -> None:
        """Evict turns in the rolling mode. `before`: what was evicted before them."""
        now = summarize_eviction(gone)
        evicted = now if before is None else before.plus(now)
        if self.mode is not Mode.ROLLING or evicted == self._evicted:
            return
        self._evicted = evicted
        self._buffer.release(self._needed_from())
        eviction = eviction_of(gone, kept)
        self._log.info(
            MemoryEvent.CONTEXT_ROLLED,
            evicted_count=eviction.evicted_count,
            evicted_tokens=eviction.evicted_tokens,
            kept_tokens=eviction.kept_tokens,
            first_evicted_timestamp=eviction.first_evicted_timestamp,
            last_evicted_timestamp=eviction.last_evicted_timestamp,
            evicted_until=evicted.until,
            total_evicted_count=evicted.count,
            total_evicted_tokens=evicted.tokens,
        )

    # -- people who opted out -------------------------------------------------------------------------------

    def withhold(self, who: Callable[[], frozenset[str]]) -> None:
        """Send a model nothing of the people whose ids `who` returns, from now on. Nothing is deleted."""
        self._withheld.withhold(who)

    def allowed_part(self, turn: Turn) -> Turn:
        """Return a turn without the words that are withheld now."""
        self.compactor.update_withheld()
        return self._withheld.turn(turn)

    # -- the mode ---------------------------------------------------------------------------------------------

    async def set_mode(self, mode: Mode) -> Mode:
        """Change the mode from the next context on. Returns the mode that is used (see `open`).

        Turns that the new mode needs and that are no longer in memory are read from the store. Raises StoreError if
        that fails; the mode then stays unchanged.
        """
        if mode is self._requested_mode:
            return self.mode
        requested_mode, mode = mode, effective_mode(mode, self._log, searchable=self._searchable)
        if mode is self.mode:
            self._requested_mode = requested_mode
            return mode
        if self._buffer.first > (cursor := self.compactor.cursor):
            stored = await self.store_queue.load()
            missing = self._buffer.restore_older(stored.window, first=cursor)
            if missing:
                self._log.error(MemoryEvent.TURNS_MISSING, first_seq=missing[0], count=len(missing))
        self._log.info(MemoryEvent.MODE_CHANGED, old_mode=self.mode.value, new_mode=mode.value)
        # What was evicted comes back, as far as it is still in memory.
        self.mode, self._requested_mode, self._evicted = mode, requested_mode, None
        self.compactor.set_mode(mode)
        self._log = self._log.bind(compaction_mode=mode.value)
        self._buffer.release(self._needed_from())
        return mode

    # -- the run in flight, and the end -----------------------------------------------------------------------

    async def refresh(self) -> bool:
        """Read the session again if somebody else changed it in the store, for example by forgetting words.

        Returns whether it had changed. Don't call this while a reply is being prepared. Raises StoreError.
        """
        return await self.compactor.refresh()

    async def settle(self) -> RunFailed | None:
        """Wait until no run is in flight. Returns why the last one failed, None if it landed. For replays and tests;
        don't call this while a reply is being prepared.
        """
        await self.compactor.settle()
        return self.compactor.failure

    async def end(self) -> None:
        """End the session: start no new run, wait a short time for the run in flight, and store the closing segment.

        Raises StoreError if the store fails. The caller should then call `end` again.
        """
        await self.compactor.end()

    async def _close(self) -> None:
        """End what runs and store what waits, when the block of `open` is left."""
        try:
            await self.compactor.aclose()
        finally:
            # A cancellation must not stop this write: what waits would be lost.
            try:
                await self._store_last()
            except asyncio.CancelledError:
                # Whether it was stored is not known; storing it again changes nothing.
                await self._store_last()
                raise

    async def _store_last(self) -> None:
        try:
            await self.store_queue.flush()
        except (StaleOwnerError, StoreError) as exc:
            self._log.error(
                MemoryEvent.TURNS_NOT_STORED, count=self._buffer.total - self.store_queue.stored_turns, error=exc
            )

    def _refuse_after_end(self) -> None:
        if self.compactor.ending:
            raise SessionEndedError(f"Session {self.session_id} has ended; nothing can be added to it.")

    # -- state, for reports and tests -------------------------------------------------------------------------------

    @property
    def cursor(self) -> Seq:
        """Return the first seq that is not folded."""
        return self.compactor.cursor

    @property
    def total_turns(self) -> int:
        """Return how many turns the session has had."""
        return self._buffer.total

    @property
    def state(self) -> CompactionState:
        """Return the compaction state that is kept across restarts."""
        return self.compactor.state

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return all turns in memory, oldest first: the window and the recently folded turns."""
        return self._buffer.since(self._buffer.first)

    def turn(self, seq: int) -> Turn:
        """Return the turn of this number, which must be in memory: turns that are not stored yet always are."""
        return self._buffer.between(Seq(seq), Seq(seq + 1))[0]

    @property
    def window(self) -> tuple[Turn, ...]:
        """Return the turns that a model is sent word for word, oldest first.

        These are all turns that are not folded and, in the rolling mode, not evicted. In the mode `off` they are the
        last 50. What is withheld now is in none.
        """
        since = Seq(max(self.compactor.cursor, self._evicted_until))
        turns = self._buffer.last(RECENT_WINDOW) if self.mode is Mode.OFF else self._buffer.since(since)
        self.compactor.update_withheld()
        return tuple(map(self._withheld.turn, turns))

    @property
    def live_notes(self) -> tuple[Note, ...]:
        """Return the live notes of shared screens, oldest first, without what is withheld now."""
        self.compactor.update_withheld()
        return tuple(map(self._withheld.note, self.compactor.notes.live))

    @property
    def summary(self) -> str | None:
        """Return the summary of all folded turns, without what is withheld now; None before the first landing."""
        return self.compactor.summary


def effective_mode(mode: Mode, log: structlog.typing.FilteringBoundLogger, *, searchable: bool) -> Mode:
    """Return the mode to use: `summary` in place of `rolling` if there is no memory search to find evicted turns."""
    if mode is Mode.ROLLING and not searchable:
        log.warning(MemoryEvent.SEARCH_MISSING, compaction_mode=Mode.SUMMARY.value)
        return Mode.SUMMARY
    return mode
