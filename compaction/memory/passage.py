"""Passages (what memory search can find), `Scope` (where a search looks), and the port of the search index.

A search finds only what those who get to see it may read (`Readable`), and ranks by nothing else: it finds the same, in
the same order, as a search of a memory that never had the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NewType, Protocol, TypeAlias

from compaction.language.terms import name_terms, terms
from compaction.language.text import count_words
from compaction.model import Note, Segment, Seq, SessionId, Turn, TurnKind, TurnPart

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

# Number of a passage in its index. Passages that are stored later have higher numbers.
PassageId = NewType("PassageId", int)


# How many passages with one term are looked at, the newest. Scoring as many takes about 10 ms.
MOST_SCORED = 6_000
# BM25 (Robertson, Zaragoza 2009), in which each term of a passage counts once. The length of a passage is compared with
# that of a usual turn: that of other passages would tell of them. B is tuned on LoCoMo.
K1, B = 1.2, 0.5
TYPICAL_TERMS = 15
# Beside so many of the best passages turns are looked at that have none of the terms.
MOST_WITH_NEIGHBOURS = 240
# What a term of a turn counts for the turns beside it. Tuned as are the weights in `recall`.
NEIGHBOUR_SHARE = 0.4
# Longer than any session, in UTC epoch seconds: somebody who may read all of it.
ALWAYS = (-1.0, 1e11)

# A short text like 'Yeah, exactly' is similar to every other agreement and to nothing that people search for.
LEAST_EMBEDDED_WORDS = 4


class PassageKind(StrEnum):
    """Whether a passage is a turn, a note or a segment."""

    TURN = "turn"
    NOTE = "note"
    SEGMENT = "segment"


PassageSource: TypeAlias = Turn | Note | Segment
_KINDS = {Turn: PassageKind.TURN, Note: PassageKind.NOTE, Segment: PassageKind.SEGMENT}


@dataclass(frozen=True, slots=True)
class Readable:
    """What all who get to see the results of a search may read.

    `sessions`: the stretches of time of each session, in UTC epoch seconds; a passage is read if one of them holds all
    of it, and a segment only with `ALWAYS`, because it may tell of any turn. None: all of every session. `withheld`:
    the ids of people who withhold their words. While there are any, only turns of other people are read: notes,
    summaries, facts and the bot's answers may repeat what was withheld.
    """

    sessions: Mapping[SessionId, tuple[tuple[float, float], ...]] | None = None
    withheld: frozenset[str] = frozenset()

    def covers(self, session_id: SessionId, since: float, until: float) -> bool:
        """Return whether a stretch of time of a session may be read."""
        if self.sessions is None:
            return True
        return any(start <= since and until <= end for start, end in self.sessions.get(session_id, ()))

    def reads(self, session_id: SessionId, source: PassageSource) -> bool:
        """Return whether a turn, note or segment may be read."""
        if self.withheld and not (isinstance(source, Turn) and is_of_others(source, self.withheld)):
            return False
        return self.covers(session_id, *heard_during(source))


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a search looks, and for whom (`readable`). None means no limit; `channels` are voice channels.

    Times are UTC epoch seconds: `since <= at < until`. `speaker`: a display name, some words of one, or a speaker's id.
    `kinds`: the kinds of passages to find. `in_view`: a session and a seq; turns of that session from that seq on are
    left out, because the reader can already see them. `archived`: also search the archived segments. `with_bot`: also
    find what was asked of the bot, and its answers, as a search for the words of one person does.
    """

    guild_id: int | None = None
    channels: frozenset[int] | None = None
    session_id: SessionId | None = None
    speaker: str | None = None
    since: float | None = None
    until: float | None = None
    kinds: frozenset[PassageKind] | None = None
    in_view: tuple[SessionId, Seq] | None = None
    archived: bool = False
    with_bot: bool = False
    readable: Readable = field(default_factory=Readable)


@dataclass(frozen=True, slots=True)
class Passage:
    """A turn, note or segment that was found.

    `around`: the found turn and those turns around it that may be read, in order; empty for notes and segments.
    `own_terms`: the search terms of the passage. `nearby_terms`: those of the turns before and after it, if they may be
    read. `replaced_by`: the later turn of the same session that corrects this one, as found when the turns were folded.
    """

    id: PassageId
    session_id: SessionId
    source: PassageSource
    own_terms: frozenset[str] = frozenset()
    nearby_terms: frozenset[str] = frozenset()
    around: tuple[Turn, ...] = ()
    replaced_by: Seq | None = None
    # True for a segment in the archive (`memory.tiers`). It is found only if the scope includes the archive.
    archived: bool = False

    @property
    def at(self) -> float:
        """Return when the passage was said or seen, or when the segment began, in UTC epoch seconds."""
        return self.source.at if isinstance(self.source, Note) else self.source.started_at

    @property
    def text(self) -> str:
        return source_text(self.source)

    def is_in(self, view: tuple[SessionId, Seq] | None) -> bool:
        """Return whether this is a turn of the session in `view`, with the seq given there or a later one."""
        turn = self.source if isinstance(self.source, Turn) else None
        return turn is not None and view is not None and self.session_id == view[0] and turn.seq >= view[1]

    @property
    def speakers(self) -> tuple[str, ...]:
        """Return the display names of the passage's speakers, each once."""
        return tuple(dict.fromkeys(name for _, name in source_speakers(self.source)))


def source_text(source: PassageSource) -> str:
    """Return the text of a turn, note or segment, without the names of speakers."""
    if isinstance(source, Segment):
        return "\n".join(dict.fromkeys((source.gist, *(fact.text for fact in source.facts))))
    return "\n".join(part.text for part in source_parts(source))


def source_parts(source: PassageSource) -> tuple[TurnPart, ...]:
    """Return who says which words of a turn, or shows those of a note; nothing of a segment, whose words are nobody's
    alone.
    """
    if isinstance(source, Note):
        return (TurnPart(source.person_id or "", source.who, source.what),)
    return source.parts if isinstance(source, Turn) else ()


def source_terms(source: PassageSource) -> tuple[str, ...]:
    """Return the search terms of a turn, note or segment: its speakers' names, and then its text.

    A question often names a person, and that person's own words rarely hold the name.
    """
    names = [term for _, name in source_speakers(source) for term in name_terms(name)]
    return (*dict.fromkeys(names), *terms(source_text(source)))


def source_speakers(source: PassageSource) -> tuple[tuple[str, str], ...]:
    """Return (id, display name) of the speakers, and of whose screen a note is. The id is empty if it is not known: for
    segments, and for notes of nobody.
    """
    if isinstance(source, Segment):
        return tuple(("", name) for name in dict.fromkeys(fact.speaker for fact in source.facts))
    return tuple((part.speaker_id, part.speaker) for part in source_parts(source))


def heard_during(source: PassageSource) -> tuple[float, float]:
    """Return the stretch of time of which a passage tells, in UTC epoch seconds: `ALWAYS` for a segment."""
    match source:
        case Turn():
            return source.started_at, source.ended_at
        case Note():
            return source.at, source.at
        case Segment():
            return ALWAYS


def is_of_others(turn: Turn, withheld: Collection[str]) -> bool:
    """Return whether no part of a turn is of these people, and the bot, which may repeat them, did not say it."""
    return turn.kind is not TurnKind.ASSISTANT and not any(part.speaker_id in withheld for part in turn.parts)


def source_kind(source: PassageSource) -> PassageKind:
    return _KINDS[type(source)]


def text_to_embed(source: PassageSource) -> str | None:
    """Return the text to embed, or None if an embedding of the text would not help a search."""
    text = " ".join(source_text(source).split())
    if isinstance(source, Turn) and source.kind in {TurnKind.MEMBERSHIP, TurnKind.EFFECT}:
        return None
    if count_words(text) < LEAST_EMBEDDED_WORDS:
        return None
    if isinstance(source, Segment):
        return text
    return " ".join(f"{part.speaker}: {' '.join(part.text.split())}" for part in source_parts(source))


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How many `passages` of a scope contain each term, of `total` passages, both at most `MOST_SCORED`. Terms that no
    passage contains are left out.
    """

    passages: Mapping[str, int]
    total: int


class RecallIndex(Protocol):
    """The search index over passages. What a scope leaves out changes no result. Raises `StoreError` on any failure."""

    async def count(self, terms: Sequence[str], scope: Scope) -> TermCounts:
        """Return how many passages in the scope have each term."""

    async def full_text(self, weights: Mapping[str, float], scope: Scope, *, limit: int) -> Sequence[PassageId]:
        """Return the passages with any of these terms, best first, and the turns beside the best ones. `weights`: what
        each term counts. A term of the turns beside a passage that are in the scope counts `NEIGHBOUR_SHARE`.
        """

    async def newest(self, scope: Scope, *, limit: int) -> Sequence[PassageId]:
        """Return the newest passages in the scope, newest first."""

    async def find_similar(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """Return the passages whose embeddings are most similar to `vector`, with the cosine, best first.

        `model`: the name of the embedding model. Only embeddings of this model are compared.
        """

    async def passages(self, ids: Sequence[PassageId], readable: Readable) -> Sequence[Passage]:
        """Return these passages in this order. Those that are deleted or may not be read are left out."""

    async def find_turns(self, session_id: SessionId, seqs: Sequence[Seq]) -> Sequence[PassageId]:
        """Return the passages of these turns, in order of seq."""
