"""The timeline of one session, which callers of this package use. Turns and notes go in, a model's context comes out.

    async with SessionTimeline.open(session_id, store=store, …) as timeline:
        turn = await timeline.append(TurnKind.SPEECH, parts, started_at=…, ended_at=…)
        context = timeline.context(current=turn, max_input_tokens=budget.max_input_tokens)

Turns and notes are stored when they arrive. Leaving the block stops the run in flight but does not end the session, so
the session can be opened again. `end` ends the session.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import structlog

from compaction.compactor import Compactor
from compaction.context_source import ContextSource, effective_mode
from compaction.errors import SessionEndedError, StaleOwnerError, StoreError
from compaction.log_events import MemoryEvent
from compaction.model import CompactionState, Mode, Note, Segment, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.restored_session import RestoredSession, restore_session
from compaction.window import PENDING_NOTES_RUN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from compaction.context.build import SessionContext
    from compaction.events import CompactionEvent, RunFailed
    from compaction.payload import PayloadPart
    from compaction.ports import SessionClock, TurnStore
    from compaction.settings import CompactionSettings
    from compaction.summary.port import Summariser

# Normally building a context starts runs, but a bot that never speaks builds no context. If there are more unfolded
# turns than this, each new turn also checks whether a batch is due.
SILENT_BACKLOG = 200


class SessionTimeline:
    """The turns, notes, compaction and context of one session. Created by `open`; not thread-safe.

    *Ownership*: owns the run in flight and stops it when the block of `open` is left.
    """

    def __init__(
        self,
        restored: RestoredSession,
        *,
        session_id: SessionId,
        compactor: Compactor,
        contexts: ContextSource,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self.session_id = session_id
        self._buffer = restored.buffer
        self._store_queue = restored.store_queue
        self._names = restored.names
        self._withheld = restored.withheld
        self._compactor = compactor
        self._contexts = contexts
        self._log = log

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        session_id: SessionId,
        *,
        store: TurnStore,
        summariser: Summariser,
        settings: CompactionSettings,
        mode: Mode,
        clock: SessionClock,
        log: structlog.typing.FilteringBoundLogger | None = None,
        guild_id: str = "",
        rng: Random | None = None,
        on_event: Callable[[CompactionEvent], None] | None = None,
        searchable: bool = False,
    ) -> AsyncIterator[SessionTimeline]:
        """Open a new or stored session, and close it when the block is left.

        `on_event` is called for each compaction event and must not block. `searchable`: there is memory search. Without
        it, evicted turns could not be found again, so the mode `summary` is used instead of the rolling mode.
        Raises StoreError if the stored session can't be read, and SessionEndedError if the session has ended.
        """
        log = (structlog.get_logger() if log is None else log).bind(session_id=session_id, guild_id=guild_id)
        requested_mode, mode = mode, effective_mode(mode, log, searchable=searchable)
        log = log.bind(compaction_mode=mode.value)
        restored = await restore_session(session_id, store, timeout_s=settings.store_timeout_s, log=log)
        compactor = Compactor(
            session_id,
            restored,
            summariser,
            settings=settings,
            mode=mode,
            clock=clock,
            rng=Random() if rng is None else rng,  # noqa: S311 - jitter and names of runs, no secret
            log=log,
            on_event=on_event,
        )
        contexts = ContextSource(
            restored,
            compactor,
            mode=mode,
            requested_mode=requested_mode,
            searchable=searchable,
            log=log,
        )
        timeline = cls(restored, session_id=session_id, compactor=compactor, contexts=contexts, log=log)
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
        self._contexts.make_room()
        self._store_queue.put(turn)
        await self._store_queue.flush_promptly()
        if self._buffer.total - self._compactor.cursor > SILENT_BACKLOG:
            self._compactor.check()
        return self.turn(turn.seq)

    async def add_note(self, note: Note) -> None:
        """Add and store one note about a shared screen. Raises the same errors as `append`.

        A note without an id gets that of the person to whom `name_of` has given its name, who may withhold it.
        """
        self._refuse_after_end()
        if (owner := note.person_id or self._names.owner_of(note.who)) is not None:
            note = replace(note, person_id=owner)
            self._withheld.note_screen(owner, note, next_turn=Seq(self._buffer.total))
        self._compactor.add_note(note)
        await self._store_queue.flush_promptly()
        if len(self._compactor.notes.pending) >= PENDING_NOTES_RUN:
            # People who watch in silence add no turns, and the bot may never speak.
            self._compactor.check()

    async def retire_live_notes(self) -> None:
        """Make all live notes pending, because the screen share ended. Raises the same errors as `append`."""
        self._refuse_after_end()
        self._compactor.retire_notes()
        await self._store_queue.flush_promptly()

    def fold_if_due(self) -> None:
        """If a batch is due, start folding it in the background: a model answers with the turns so far. Never waits."""
        self._compactor.check()

    async def store_waiting(self) -> None:
        """Store what the store has refused so far. Raises StoreError if it refuses again; nothing is lost then."""
        await self._store_queue.flush()

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
        self._compactor.check()
        return self._contexts.context(current=current, max_input_tokens=max_input_tokens)

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
        self._contexts.record_sent(context, payload, answer_to=answer_to)

    # -- people who opted out -------------------------------------------------------------------------------

    def withhold(self, who: Callable[[], frozenset[str]]) -> None:
        """Send a model nothing of the people whose ids `who` returns, from now on. Nothing is deleted."""
        self._withheld.withhold(who)

    def allowed_part(self, turn: Turn) -> Turn:
        """Return a turn without the words that are withheld now."""
        self._compactor.update_withheld()
        return self._withheld.turn(turn)

    # -- the mode ---------------------------------------------------------------------------------------------

    @property
    def mode(self) -> Mode:
        """Return the mode that is used. It can differ from the requested mode (see `open`)."""
        return self._contexts.mode

    async def set_mode(self, mode: Mode) -> Mode:
        """Change the mode from the next context on. Returns the mode that is used (see `open`).

        Turns that the new mode needs and that are no longer in memory are read from the store. Raises StoreError if
        that fails; the mode then stays unchanged.
        """
        used = await self._contexts.set_mode(mode)
        self._log = self._log.bind(compaction_mode=used.value)
        return used

    # -- the run in flight, and the end -----------------------------------------------------------------------

    async def refresh(self) -> bool:
        """Read the session again if somebody else changed it in the store, for example by forgetting words.

        Returns whether it had changed. Don't call this while a reply is being prepared. Raises StoreError.
        """
        return await self._compactor.refresh()

    async def settle(self) -> RunFailed | None:
        """Wait until no run is in flight. Returns why the last one failed, None if it landed. For replays and tests;
        don't call this while a reply is being prepared.
        """
        await self._compactor.settle()
        return self._compactor.failure

    async def end(self) -> None:
        """End the session: start no new run, wait a short time for the run in flight, and store the closing segment.

        Raises StoreError if the store fails. The caller should then call `end` again.
        """
        await self._compactor.end()

    async def _close(self) -> None:
        """End what runs and store what waits, when the block of `open` is left."""
        try:
            await self._compactor.aclose()
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
            await self._store_queue.flush()
        except (StaleOwnerError, StoreError) as exc:
            self._log.error(
                MemoryEvent.TURNS_NOT_STORED, count=self._buffer.total - self._store_queue.stored_turns, error=exc
            )

    def _refuse_after_end(self) -> None:
        if self._compactor.ending:
            raise SessionEndedError(f"Session {self.session_id} has ended; nothing can be added to it.")

    # -- state, for reports and tests -------------------------------------------------------------------------------

    @property
    def cursor(self) -> Seq:
        """Return the first seq that is not folded."""
        return self._compactor.cursor

    @property
    def total_turns(self) -> int:
        """Return how many turns the session has had."""
        return self._buffer.total

    @property
    def unstored_items(self) -> int:
        """Return how many turns, notes and changes of notes wait to be stored. None is ever dropped."""
        return self._store_queue.waiting

    def on_change(self, told: Callable[[], object]) -> None:
        """Have `told` called each time that the memory is taken over as somebody else has changed it."""
        self._compactor.on_change = told

    @property
    def state(self) -> CompactionState:
        """Return the compaction state that is kept across restarts."""
        return self._compactor.state

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
        last 50.
        """
        return self._contexts.window

    @property
    def live_notes(self) -> tuple[Note, ...]:
        """Return the live notes of shared screens, oldest first, without what is withheld now."""
        self._compactor.update_withheld()
        return tuple(map(self._withheld.note, self._compactor.notes.live))

    @property
    def summary(self) -> str | None:
        """Return the summary of all folded turns, without what is withheld now; None before the first landing."""
        return self._compactor.summary

    @property
    def unsourced(self) -> int:
        """Return how many figures and names the summaries of this process have that their requests did not hold."""
        return self._compactor.unsourced

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments of all stored runs, in order."""
        return self._compactor.segments
