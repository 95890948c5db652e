"""Collects what prompts and tools have quoted from other sessions, and writes it to the store later.

If it is forgotten there, the bot's replies that may tell of it go too (`bot.store.quoted_turns`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.store.quoted_turns import QuotedTurn
from compaction.memory.passage import PassageKind
from compaction.memory.quotes import parse_citation
from compaction.payload import PartKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.store.quoted_turns import QuoteStore
    from compaction.memory.recall import RecallHit
    from compaction.model import SessionId
    from compaction.payload import PayloadPart

# The kinds of parts that quote earlier talk. Speech-to-speech has a part of its own for earlier sessions.
QUOTING = frozenset({PartKind.RECALL, PartKind.CONTINUITY})


# Of so many it is remembered that they are written. One that is written again changes nothing.
_MOST_WRITTEN = 10_000


class QuoteLog:
    """The quotes that are not yet written, of all sessions of the process. Not thread-safe."""

    def __init__(self, store: QuoteStore) -> None:
        self._store = store
        # The first turn of a session that may tell of a turn of another one (None: a note or a summary there), and of a
        # fact about a person.
        self._quotes: dict[tuple[SessionId, SessionId, int | None], int] = {}
        self._facts: dict[tuple[SessionId, str], int] = {}
        self._written: set[object] = set()

    @property
    def waiting(self) -> bool:
        """Return whether something is to be written."""
        return bool(self._quotes or self._facts)

    def note_payload(self, parts: Iterable[PayloadPart], session_id: SessionId, *, from_seq: int) -> None:
        """Note what a prompt of a session quotes. `from_seq`: the number that the reply will have, or a lower one."""
        for part in parts:
            if part.kind is PartKind.PARTICIPANTS:
                for fact in part.refs:
                    if (session_id, fact) not in self._written:
                        self._facts.setdefault((session_id, fact), from_seq)
            elif part.kind in QUOTING:
                for cited in filter(None, map(parse_citation, part.refs)):
                    seq = int(cited.key) if cited.kind is PassageKind.TURN else None
                    self._note(session_id, cited.session_id, seq, from_seq)

    def note_hits(self, found: Iterable[RecallHit], session_id: SessionId, *, from_seq: int) -> None:
        """Note what a tool has shown the model in a session."""
        for hit in found:
            seqs: list[int | None] = [turn.seq for turn in hit.turns]
            for seq in seqs or [None]:
                self._note(session_id, hit.session_id, seq, from_seq)

    def _note(self, session_id: SessionId, source: SessionId, seq: int | None, from_seq: int) -> None:
        if source != session_id and (session_id, source, seq) not in self._written:
            self._quotes.setdefault((session_id, source, seq), from_seq)

    async def write(self) -> None:
        """Write what was noted. Raises `StoreError`; it is then kept for the next call."""
        if not self.waiting:
            return
        quotes, facts = dict(self._quotes), dict(self._facts)
        said_in = await self._store.turns_of_facts({fact for _, fact in facts}) if facts else {}
        told = {QuotedTurn(session_id, first, source, seq) for (session_id, source, seq), first in quotes.items()}
        told |= {
            QuotedTurn(session_id, first, *said_in[fact])
            for (session_id, fact), first in facts.items()
            if fact in said_in and said_in[fact][0] != session_id
        }
        await self._store.store(told)
        if len(self._written) > _MOST_WRITTEN:
            self._written.clear()
        self._written.update(quotes, facts)
        for source in quotes:
            self._quotes.pop(source, None)
        for fact in facts:
            self._facts.pop(fact, None)
