"""A slow and simple `RecallIndex` that looks at every stored passage at each search. It is the reference for the real
index.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.terms import normalized_words
from compaction.memory.passage import (
    Passage,
    PassageId,
    PassageSource,
    Scope,
    TermCounts,
    source_kind,
    source_speakers,
    source_terms,
    text_to_embed,
)
from compaction.model import Seq, SessionId, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compaction.ports import Embedder

# The constants of BM25 that SQLite's FTS5 uses.
K1, B = 1.2, 0.75
COLUMN_WEIGHTS = (1.0, 0.5, 0.5)


def _speaker_matches(wanted: str, speakers: Iterable[tuple[str, str]]) -> bool:
    """Return whether `wanted` is the id of one of these speakers, or all its words are in a speaker's name.

    `speakers`: pairs of id and display name.
    """
    words = set(normalized_words(wanted))
    return bool(words) and any(
        wanted.strip() == speaker_id or words <= set(normalized_words(name)) for speaker_id, name in speakers
    )


@dataclass
class _Entry:
    id: PassageId
    session_id: SessionId
    guild_id: int | None
    channel_id: int | None
    source: PassageSource
    vector: Sequence[float] | None = None
    replaced_by: Seq | None = None
    own: tuple[str, ...] = ()

    @property
    def at(self) -> float:
        return Passage(self.id, self.session_id, self.source).at


class InMemoryRecallIndex:
    """Keeps all passages in a list."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._turns: dict[tuple[SessionId, int], _Entry] = {}
        self.model = "fake"

    def add(
        self,
        session_id: SessionId,
        source: PassageSource,
        *,
        guild_id: int | None = None,
        channel_id: int | None = None,
    ) -> None:
        """Add a turn, a note or a segment."""
        entry = _Entry(PassageId(len(self._entries) + 1), session_id, guild_id, channel_id, source)
        entry.own = source_terms(source)
        self._entries.append(entry)
        if isinstance(source, Turn):
            self._turns[session_id, source.seq] = entry

    def forget(self, session_id: SessionId, seq: int) -> None:
        """Remove a turn."""
        del self._turns[session_id, seq]
        self._entries = [
            each
            for each in self._entries
            if not (each.session_id == session_id and isinstance(each.source, Turn) and each.source.seq == seq)
        ]

    def correct(self, session_id: SessionId, old: int, new: int) -> None:
        """Record that folding found the turn `new` to correct the turn `old`."""
        for each in self._entries:
            if each.session_id == session_id and isinstance(each.source, Turn) and each.source.seq == old:
                each.replaced_by = Seq(new)

    async def embed(self, embedder: Embedder) -> None:
        """Embed every passage that has no vector yet."""
        self.model = embedder.model
        for each in self._entries:
            text = text_to_embed(each.source)
            if each.vector is None and text is not None:
                (each.vector,) = await embedder.embed([text])

    async def count(self, terms: Sequence[str]) -> TermCounts:
        """Return for each term how many passages contain it."""
        counts = Counter(term for each in self._entries for term in set().union(*self._columns(each)))
        return TermCounts({term: counts[term] for term in terms if term in counts}, len(self._entries))

    async def full_text(
        self, terms: Sequence[str], scope: Scope, *, limit: int, newest: int | None = None
    ) -> Sequence[PassageId]:
        """Return the passages with any of the terms, best match first."""
        columns = [self._columns(each) for each in self._entries]
        commonness = Counter(term for each in columns for term in set().union(*each))
        average = sum(len(column) for each in columns for column in each) / max(1, len(columns))
        found = [
            (self._bm25(each, terms, commonness, average), -each.id, each)
            for each in self._newest(newest)
            if self._inside(each, scope) and any(set(terms) & set(column) for column in self._columns(each))
        ]
        return tuple(each.id for _, _, each in sorted(found, key=lambda each: (-each[0], each[1]))[:limit])

    async def newest(self, scope: Scope, *, limit: int) -> Sequence[PassageId]:
        """Return the newest passages in the scope, newest first."""
        return tuple([each.id for each in reversed(self._entries) if self._inside(each, scope)][:limit])

    async def find_similar(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """Return the passages most similar to `vector`."""
        found = [
            (each.id, math.fsum(a * b for a, b in zip(vector, each.vector, strict=True)))
            for each in self._entries
            if each.vector is not None and model == self.model and self._inside(each, scope)
        ]
        return tuple(sorted(found, key=lambda each: (-each[1], -each[0]))[:limit])

    async def passages(self, ids: Sequence[PassageId]) -> Sequence[Passage]:
        """Return the passages with these ids, in the given order."""
        by_id = {each.id: each for each in self._entries}
        return tuple(self._passage(by_id[each]) for each in dict.fromkeys(ids) if each in by_id)

    async def find_turns(self, session_id: SessionId, seqs: Sequence[Seq]) -> Sequence[PassageId]:
        """Return the ids of the passages of these turns."""
        found = [
            (each.source.seq, each.id)
            for each in self._entries
            if each.session_id == session_id and isinstance(each.source, Turn) and each.source.seq in seqs
        ]
        return tuple(passage_id for _, passage_id in sorted(found))

    def _newest(self, newest: int | None) -> list[_Entry]:
        if newest is None or not self._entries:
            return self._entries
        return [each for each in self._entries if each.id > self._entries[-1].id - newest]

    def _turn(self, session_id: SessionId, seq: int) -> _Entry | None:
        return self._turns.get((session_id, seq))

    def _columns(self, entry: _Entry) -> tuple[tuple[str, ...], ...]:
        if not isinstance(entry.source, Turn):
            return (entry.own, (), ())
        beside = (self._turn(entry.session_id, entry.source.seq + step) for step in (-1, 1))
        return (entry.own, *(() if each is None else each.own for each in beside))

    def _bm25(self, entry: _Entry, wanted: Sequence[str], commonness: Counter[str], average: float) -> float:
        columns = self._columns(entry)
        length = sum(map(len, columns))
        score = 0.0
        for term in wanted:
            with_term = commonness[term]
            idf = max(1e-6, math.log((len(self._entries) - with_term + 0.5) / (with_term + 0.5)))
            often = sum(weight * column.count(term) for weight, column in zip(COLUMN_WEIGHTS, columns, strict=True))
            score += idf * often * (K1 + 1) / (often + K1 * (1 - B + B * length / average))
        return score

    def _inside(self, entry: _Entry, scope: Scope) -> bool:
        source = entry.source
        viewed = scope.in_view is not None and entry.session_id == scope.in_view[0]
        seq = getattr(source, "seq", getattr(source, "start", None))
        return (
            not scope.is_empty
            and scope.guild_id in (None, entry.guild_id)
            and (scope.channels is None or entry.channel_id in scope.channels)
            and scope.session_id in (None, entry.session_id)
            and (scope.sessions is None or entry.session_id in scope.sessions)
            and (scope.kinds is None or source_kind(source) in scope.kinds)
            and (scope.speaker is None or _speaker_matches(scope.speaker, source_speakers(source)))
            and (scope.since is None or entry.at >= scope.since)
            and (scope.until is None or entry.at < scope.until)
            and not (viewed and scope.in_view is not None and seq is not None and seq >= scope.in_view[1])
        )

    def _passage(self, entry: _Entry) -> Passage:
        own, before, after = self._columns(entry)
        around: tuple[Turn, ...] = ()
        if isinstance(entry.source, Turn):
            beside = (self._turn(entry.session_id, entry.source.seq + step) for step in range(-1, 4))
            around = tuple(each.source for each in beside if each is not None and isinstance(each.source, Turn))
        return Passage(
            entry.id,
            entry.session_id,
            entry.source,
            frozenset(own),
            frozenset(before) | frozenset(after),
            around,
            entry.replaced_by,
        )
