"""Collects which turns and segments were used, and writes the access counts to the store later.

An access counts as a mention, so that a segment does not become cold while people ask about it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bot.memory.quote_log import QUOTING
from compaction.memory.passage import PassageKind
from compaction.memory.quotes import parse_citation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bot.clock import Clock
    from bot.memory.quote_log import QuoteLog
    from bot.store.tiers import TierStore
    from compaction.memory.recall import RecallHit
    from compaction.model import SessionId
    from compaction.payload import PayloadPart

# Beyond this many unwritten ranges the oldest are dropped: counts need not be exact.
MAX_PENDING = 1_000


class AccessLog:
    """Accesses not yet written. One for the process; not thread-safe. `quotes`: gets what models were shown."""

    def __init__(self, tiers: TierStore, clock: Clock, quotes: QuoteLog | None = None) -> None:
        self._tiers = tiers
        self._quotes = quotes
        self._clock = clock
        self._pending: list[tuple[SessionId, int, int]] = []
        self._last_at = 0.0

    def note(self, session_id: SessionId, first: int, last: int) -> None:
        """Record that the turns from `first` to `last` of a session were read. Does not wait."""
        self._last_at = self._clock.now()
        self._pending.append((session_id, first, last))
        del self._pending[:-MAX_PENDING]

    def note_quotes(self, parts: Sequence[PayloadPart], session_id: SessionId, *, from_seq: int) -> None:
        """Record the turns quoted in a prompt that was sent in a session. Does not wait. `from_seq`: the number that
        the reply will have, or a lower one.
        """
        if self._quotes is not None:
            self._quotes.note_payload(parts, session_id, from_seq=from_seq)
        for part in parts:
            if part.kind in QUOTING:
                for cited in filter(None, map(parse_citation, part.refs)):
                    if cited.kind is PassageKind.TURN:
                        self.note(cited.session_id, int(cited.key), int(cited.key))

    def note_hits(self, found: Iterable[RecallHit]) -> None:
        """Record what a search found: a turn without its neighbours, or a segment's range. Does not wait."""
        for each in found:
            first, last = (each.seq, each.seq) if each.seq is not None else (each.seq_from, each.seq_to)
            if first is not None and last is not None:
                self.note(each.session_id, first, last)

    def note_told(self, found: Sequence[RecallHit], session_id: SessionId, *, from_seq: int) -> None:
        """Record what a search of a model found in a session. Does not wait. `from_seq`: as in `note_quotes`."""
        self.note_hits(found)
        if self._quotes is not None:
            self._quotes.note_hits(found, session_id, from_seq=from_seq)

    async def write(self) -> None:
        """Write the recorded accesses. Raises `StoreError`; they are then kept for the next call."""
        if self._quotes is not None:
            await self._quotes.write()
        if not self._pending:
            return
        # Taken out before it is written: another room may write at the same time.
        pending, self._pending = self._pending, []
        ranges: defaultdict[SessionId, list[tuple[int, int]]] = defaultdict(list)
        for session_id, first, last in pending:
            ranges[session_id].append((first, last))
        try:
            await self._tiers.count_accesses(ranges, self._last_at)
        except BaseException:
            self._pending = [*pending, *self._pending][-MAX_PENDING:]
            raise
