"""A slow and simple `RecallIndex` that looks at every stored passage at each search. It is the reference for the real
index.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compaction.language.terms import normalized_words
from compaction.memory.passage import (
    K1,
    MOST_WITH_NEIGHBOURS,
    NEIGHBOUR_SHARE,
    TYPICAL_TERMS,
    B,
    Passage,
    PassageId,
    PassageSource,
    Readable,
    Scope,
    TermCounts,
    source_kind,
    source_speakers,
    source_terms,
    text_to_embed,
)
from compaction.model import Seq, SessionId, Turn
from compaction.ports import Embedder

# A session, and the seq of a turn in it.
_Place: TypeAlias = tuple[SessionId, int]


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

    @property
    def place(self) -> _Place:
        """Return the session and seq of a turn, and what no turn has for others."""
        return (self.session_id, self.source.seq if isinstance(self.source, Turn) else -self.id)

    def beside(self, found: Mapping[_Place, _Entry]) -> list[_Entry]:
        """Return the turns before and after this one, if it is one, that are among `found`."""
        session_id, seq = self.place
        steps = (-1, 1) if isinstance(self.source, Turn) else ()
        return [found[session_id, seq + step] for step in steps if (session_id, seq + step) in found]


class InMemoryRecallIndex:
    """Keeps all passages in a list."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
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

    def forget(self, session_id: SessionId, seq: int) -> None:
        """Remove a turn."""
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

    async def count(self, terms: Sequence[str], scope: Scope) -> TermCounts:
        """Return for each term how many passages contain it."""
        found = self._within(scope)
        counts = Counter(term for each in found for term in set(each.own))
        return TermCounts({term: counts[term] for term in terms if term in counts}, len(found))

    async def full_text(self, weights: Mapping[str, float], scope: Scope, *, limit: int) -> Sequence[PassageId]:
        """Return the passages with any of the terms, best match first."""
        inside = {each.place: each for each in self._within(scope)}
        found = {place: each for place, each in inside.items() if not weights.keys().isdisjoint(each.own)}
        scores = {each.id: self._bm25(each, weights, found) for each in found.values()}
        best = sorted(found.values(), key=lambda each: (-scores[each.id], -each.id))[:MOST_WITH_NEIGHBOURS]
        beside = {near.place: near for each in best for near in each.beside(inside) if near.place not in found}
        scores |= {each.id: self._bm25(each, weights, found) for each in beside.values()}
        ranked = sorted((*best, *beside.values()), key=lambda each: (-scores[each.id], -each.id))
        return tuple(each.id for each in ranked[:limit])

    async def newest(self, scope: Scope, *, limit: int) -> Sequence[PassageId]:
        """Return the newest passages in the scope, newest first."""
        return tuple([each.id for each in reversed(self._within(scope))][:limit])

    async def find_similar(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """Return the passages most similar to `vector`."""
        found = [
            (each.id, math.fsum(a * b for a, b in zip(vector, each.vector, strict=True)))
            for each in self._within(scope)
            if each.vector is not None and model == self.model
        ]
        return tuple(sorted(found, key=lambda each: (-each[1], -each[0]))[:limit])

    async def passages(self, ids: Sequence[PassageId], readable: Readable) -> Sequence[Passage]:
        """Return the passages with these ids, in the given order."""
        found = {each.place: each for each in self._within(Scope(readable=readable, archived=True))}
        by_id = {each.id: each for each in found.values()}
        return tuple(self._passage(by_id[each], found) for each in dict.fromkeys(ids) if each in by_id)

    async def find_turns(self, session_id: SessionId, seqs: Sequence[Seq]) -> Sequence[PassageId]:
        """Return the ids of the passages of these turns."""
        found = [
            (each.source.seq, each.id)
            for each in self._entries
            if each.session_id == session_id and isinstance(each.source, Turn) and each.source.seq in seqs
        ]
        return tuple(passage_id for _, passage_id in sorted(found))

    def _within(self, scope: Scope) -> list[_Entry]:
        return [each for each in self._entries if self._inside(each, scope)]

    def _bm25(self, entry: _Entry, weights: Mapping[str, float], found: Mapping[_Place, _Entry]) -> int:
        """Return the score of a passage; what is beside it counts if it was `found` too."""
        score = 0
        for term, weight in weights.items():
            near = [len(each.own) for each in entry.beside(found) if term in each.own]
            own = term in entry.own
            often = own + NEIGHBOUR_SHARE * len(near)
            size = len(entry.own) if own else sum(near)
            length = 1 - B + B * size / TYPICAL_TERMS
            score += round(1e6 * weight * often * (K1 + 1) / (often + K1 * length))
        return score

    def _inside(self, entry: _Entry, scope: Scope) -> bool:
        source = entry.source
        viewed = scope.in_view is not None and entry.session_id == scope.in_view[0]
        seq = getattr(source, "seq", getattr(source, "start", None))
        return (
            scope.guild_id in (None, entry.guild_id)
            and (scope.channels is None or entry.channel_id in scope.channels)
            and scope.session_id in (None, entry.session_id)
            and scope.readable.reads(entry.session_id, source)
            and (scope.kinds is None or source_kind(source) in scope.kinds)
            and (scope.speaker is None or _speaker_matches(scope.speaker, source_speakers(source)))
            and (scope.since is None or entry.at >= scope.since)
            and (scope.until is None or entry.at < scope.until)
            and not (viewed and scope.in_view is not None and seq is not None and seq >= scope.in_view[1])
        )

    def _passage(self, entry: _Entry, found: Mapping[_Place, _Entry]) -> Passage:
        around: tuple[Turn, ...] = ()
        if isinstance(entry.source, Turn):
            near = (found.get((entry.session_id, entry.source.seq + step)) for step in range(-1, 3))
            around = tuple(each.source for each in near if each is not None and isinstance(each.source, Turn))
        nearby = frozenset(term for each in entry.beside(found) for term in each.own)
        corrected = (entry.session_id, entry.replaced_by) in found
        return Passage(
            entry.id,
            entry.session_id,
            entry.source,
            frozenset(entry.own),
            nearby,
            around,
            entry.replaced_by if corrected else None,
        )
