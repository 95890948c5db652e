"""What one session gives to models: its window and summary as a context, by its mode, and the record of what was sent.

In the mode `off` the window is the last turns, in `summary` all that are not folded. In `rolling` the oldest of those
are evicted when they no longer fit, or when nobody has asked for so long that there are too many. `compactor` makes the
summary, and `context` makes messages of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.context.build import SessionContext, eviction_of, left_out_turns, summarize_eviction
from compaction.log_events import MemoryEvent
from compaction.model import Mode, Seq, Turn
from compaction.payload import PayloadPart, context_built_fields
from compaction.summary.folded import span_of
from compaction.window import RECENT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    import structlog

    from compaction.budget.eviction_note import EvictedTurns
    from compaction.compactor import Compactor
    from compaction.restored_session import RestoredSession


# In the rolling mode, turns are evicted when the bot is about to speak. While the bot is silent, older turns are
# evicted once there are more turns than this, which is more than any model is sent at once.
ROLLING_TURNS = 2_000


class ContextSource:
    """The contexts of one session. Not thread-safe; `compactor` is the session's.

    `mode`: the one that is used. It differs from `requested_mode` if that needs memory search and there is none.
    """

    def __init__(
        self,
        restored: RestoredSession,
        compactor: Compactor,
        *,
        mode: Mode,
        requested_mode: Mode,
        searchable: bool,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._buffer = restored.buffer
        self._store_queue = restored.store_queue
        self._withheld = restored.withheld
        self._compactor = compactor
        self.mode = mode
        self._requested_mode = requested_mode
        self._searchable = searchable
        # What was evicted so far; None outside the rolling mode.
        self._evicted: EvictedTurns | None = None
        self._log = log

    @property
    def window(self) -> tuple[Turn, ...]:
        """Return the turns that a model is sent word for word, oldest first, without what is withheld."""
        since = Seq(max(self._compactor.cursor, self._evicted_until))
        turns = self._buffer.last(RECENT_WINDOW) if self.mode is Mode.OFF else self._buffer.since(since)
        self._compactor.update_withheld()
        return tuple(map(self._withheld.turn, turns))

    def context(self, *, current: Turn | None, max_input_tokens: int) -> SessionContext:
        """Return the context as it is now. `current`: left out of its window."""
        state = self._compactor.state
        window = self.window
        if current is not None:
            window = tuple(turn for turn in window if turn.seq != current.seq)
            # It is one of the last turns, also if it is not recorded yet.
            window = window[1 - RECENT_WINDOW :] if self.mode is Mode.OFF else window
        shown = self.mode is not Mode.OFF
        span = span_of(self._compactor.segments) if shown else None
        return SessionContext(
            mode=self.mode,
            total_turns=self._buffer.total,
            cursor=state.cursor,
            summary=self._compactor.summary if shown else None,
            summary_revision=state.revision,
            chapters=self._compactor.chapters if shown else (),
            summary_started_at=None if span is None else span[0],
            summary_ended_at=None if span is None else span[1],
            window=window,
            live_notes=tuple(map(self._withheld.note, self._compactor.notes.live)),
            current=None if current is None else self._withheld.turn(current),
            max_input_tokens=max_input_tokens,
            evicted=self._evicted,
        )

    def record_sent(
        self,
        context: SessionContext,
        payload: Sequence[PayloadPart],
        *,
        answer_to: Seq | None,
    ) -> None:
        """Log that `payload`, built from `context`, is sent. In the rolling mode, evict what it leaves out."""
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

    def make_room(self) -> None:
        """Drop from memory what no context needs any more. Called after each new turn, before it is stored."""
        if self.mode is Mode.ROLLING and len(window := self.window) > ROLLING_TURNS:
            half = len(window) - ROLLING_TURNS // 2
            self._evict(window[:half], self._evicted, kept=window[half:])
        self._buffer.release(self._needed_from())

    async def set_mode(self, mode: Mode) -> Mode:
        """Change the mode from the next context on. Returns the mode that is used.

        Turns that the new mode needs and that are no longer in memory are read from the store. Raises StoreError if
        that fails; the mode then stays unchanged.
        """
        if mode is self._requested_mode:
            return self.mode
        requested_mode, mode = mode, effective_mode(mode, self._log, searchable=self._searchable)
        if mode is self.mode:
            self._requested_mode = requested_mode
            return mode
        if self._buffer.first > (cursor := self._compactor.cursor):
            stored = await self._store_queue.load()
            missing = self._buffer.restore_older(stored.window, first=cursor)
            if missing:
                self._log.error(MemoryEvent.TURNS_MISSING, first_seq=missing[0], count=len(missing))
        self._log.info(MemoryEvent.MODE_CHANGED, old_mode=self.mode.value, new_mode=mode.value)
        # What was evicted comes back, as far as it is still in memory.
        self.mode, self._requested_mode, self._evicted = mode, requested_mode, None
        self._compactor.set_mode(mode)
        self._log = self._log.bind(compaction_mode=mode.value)
        self._buffer.release(self._needed_from())
        return mode

    @property
    def _evicted_until(self) -> Seq:
        return Seq(0) if self._evicted is None else self._evicted.until

    def _needed_from(self) -> Seq:
        """Return the first turn that must stay in memory."""
        stored = self._store_queue.stored_turns
        if self.mode is Mode.OFF:
            # In this mode nothing is folded, and nothing older than the window is sent.
            return Seq(max(0, min(stored, self._buffer.total - RECENT_WINDOW)))
        return Seq(max(self._compactor.cursor, min(stored, self._evicted_until)))

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


def effective_mode(mode: Mode, log: structlog.typing.FilteringBoundLogger, *, searchable: bool) -> Mode:
    """Return the mode to use: `summary` instead of `rolling` if there is no memory search to find evicted
    turns again.
    """
    if mode is Mode.ROLLING and not searchable:
        log.warning(MemoryEvent.SEARCH_MISSING, compaction_mode=Mode.SUMMARY.value)
        return Mode.SUMMARY
    return mode
