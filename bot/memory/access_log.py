"""Collects which turns and segments were shown to models and people, and writes it to the store later.

An access counts as a mention, so that a segment does not become cold while people ask about it. What a model was shown
of another session is a quote: if it is forgotten there, the bot's replies that may tell of it go too
(`bot.store.quoted_turns`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bot.store.quoted_turns import QuotedTurn, QuoteStore
from compaction.memory.passage import PassageKind
from compaction.memory.quotes import parse_citation
from compaction.payload import PartKind, PayloadPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bot.clock import Clock
    from bot.store.tiers import TierStore
    from compaction.memory.recall import RecallHit
    from compaction.model import SessionId

# The kinds of parts that quote earlier talk. Speech-to-speech has a part of its own for earlier sessions.
_QUOTING = frozenset({PartKind.RECALL, PartKind.CONTINUITY, PartKind.PARTICIPANTS})
# Beyond this many unwritten ranges the oldest are dropped: counts need not be exact.
MAX_PENDING = 1_000
# Of so many quotes it is remembered that they are written. One that is written again changes nothing.
_MOST_WRITTEN = 10_000


class AccessLog:
    """What was shown and is not yet written. One for the process; not thread-safe. `quotes`: None: no model is shown
    anything.
    """

    def __init__(self, tiers: TierStore, clock: Clock, quotes: QuoteStore | None = None) -> None:
        self._tiers = tiers
        self._quotes = quotes
        self._clock = clock
        self._pending: list[tuple[SessionId, int, int]] = []
        self._last_at = 0.0
        # The first turn of a session that may tell of a turn of another one (None: a note or a summary there).
        self._quoted: dict[tuple[SessionId, SessionId, int | None], int] = {}
        self._written: set[tuple[SessionId, SessionId, int | None]] = set()

    def note(self, session_id: SessionId, first: int, last: int) -> None:
        """Record that the turns from `first` to `last` of a session were read. Does not wait."""
        self._last_at = self._clock.now()
        self._pending.append((session_id, first, last))
        del self._pending[:-MAX_PENDING]

    def note_quotes(self, parts: Iterable[PayloadPart], session_id: SessionId, *, from_seq: int) -> None:
        """Record what a prompt quotes that was sent in a session. Does not wait. `from_seq`: the number that the reply
        will have, or a lower one.
        """
        for part in parts:
            if part.kind in _QUOTING:
                for cited in filter(None, map(parse_citation, part.refs)):
                    seq = int(cited.key) if cited.kind is PassageKind.TURN else None
                    self._note_quote(session_id, cited.session_id, seq, from_seq)
                    if seq is not None and part.kind is not PartKind.PARTICIPANTS:
                        # What people have said of themselves is in each prompt, whatever is spoken of.
                        self.note(cited.session_id, seq, seq)

    def note_hits(self, found: Iterable[RecallHit]) -> None:
        """Record what a search found: a turn without its neighbours, or a segment's range. Does not wait."""
        for each in found:
            first, last = (each.seq, each.seq) if each.seq is not None else (each.seq_from, each.seq_to)
            if first is not None and last is not None:
                self.note(each.session_id, first, last)

    def note_quoted_hits(self, found: Sequence[RecallHit], session_id: SessionId, *, from_seq: int) -> None:
        """Record what a search of a model found in a session. Does not wait. `from_seq`: as in `note_quotes`."""
        self.note_hits(found)
        for hit in found:
            seqs: list[int | None] = [turn.seq for turn in hit.turns]
            for seq in seqs or [None]:
                self._note_quote(session_id, hit.session_id, seq, from_seq)

    def _note_quote(self, session_id: SessionId, source: SessionId, seq: int | None, from_seq: int) -> None:
        if source != session_id and (session_id, source, seq) not in self._written:
            self._quoted.setdefault((session_id, source, seq), from_seq)

    async def write(self) -> None:
        """Write what was recorded. Raises `StoreError`; quotes are then kept for the next call, and counts are not."""
        quotes = dict(self._quoted)
        if self._quotes is not None and quotes:
            await self._quotes.store(
                [QuotedTurn(to, first, source, seq) for (to, source, seq), first in quotes.items()]
            )
            if len(self._written) > _MOST_WRITTEN:
                self._written.clear()
            self._written.update(quotes)
            for each in quotes:
                self._quoted.pop(each, None)
        # Taken out before it is written: another room may write at the same time.
        pending, self._pending = self._pending, []
        ranges: defaultdict[SessionId, list[tuple[int, int]]] = defaultdict(list)
        for session_id, first, last in pending:
            ranges[session_id].append((first, last))
        if ranges:
            await self._tiers.count_accesses(ranges, self._last_at)
