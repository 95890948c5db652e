"""What memory search can find, and where it may look. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NewType, Protocol, TypeAlias

from compaction.language.terms import normalized_words
from compaction.model import Note, Segment, Seq, SessionId, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Number of a passage in its index; the later of two was stored later.
PassageId = NewType("PassageId", int)


class PassageKind(StrEnum):
    """What sort of thing a passage is."""

    TURN = "turn"
    NOTE = "note"
    SEGMENT = "segment"


PassageSource: TypeAlias = Turn | Note | Segment


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a search looks; None is no limit. Times are UTC epoch seconds, `since` counted in, `until` not.

    `speaker`: a display name, or words of one, or a speaker's id. `kinds`: what may be found. `in_view`: turns of
    that session from that seq on are before the reader's eyes already and are not found. `archived`: segments in the
    archive are found too.
    """

    guild_id: int | None = None
    channel_id: int | None = None
    session_id: SessionId | None = None
    speaker: str | None = None
    since: float | None = None
    until: float | None = None
    kinds: frozenset[PassageKind] | None = None
    in_view: tuple[SessionId, Seq] | None = None
    archived: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether nothing can be in it: an empty time, or a speaker without a word in the name."""
        empty_time = self.since is not None and self.until is not None and self.since >= self.until
        return empty_time or (self.speaker is not None and not normalized_words(self.speaker))


@dataclass(frozen=True, slots=True)
class Passage:
    """One thing found. `around`: the turns about it in order, itself among them; empty where it is no turn.

    `own`: its terms; `near`: those of the turns before and after it. `replaced_by`: the turn of the same session that
    folding found to correct this one.
    """

    id: PassageId
    session_id: SessionId
    source: PassageSource
    own_terms: frozenset[str] = frozenset()
    nearby_terms: frozenset[str] = frozenset()
    around: tuple[Turn, ...] = ()
    replaced_by: Seq | None = None
    # A segment in the archive (compaction.memory.tiers), which is found only when it is asked for.
    archived: bool = False

    @property
    def at(self) -> float:
        """Return when it was said, seen, or began."""
        return self.source.at if isinstance(self.source, Note) else self.source.started_at

    @property
    def text(self) -> str:
        """Return its words."""
        return source_text(self.source)

    @property
    def speakers(self) -> tuple[str, ...]:
        """Return whose words they are: display names, without repetition."""
        return tuple(dict.fromkeys(name for _, name in source_speakers(self.source)))


def source_text(source: PassageSource) -> str:
    """Return the words of a turn, note or segment, without who said them."""
    match source:
        case Turn():
            return "\n".join(part.text for part in source.parts)
        case Note():
            return source.what
        case Segment():
            return "\n".join(dict.fromkeys((source.gist, *(fact.text for fact in source.facts))))


def source_speakers(source: PassageSource) -> tuple[tuple[str, str], ...]:
    """Return (id, display name) of everybody whose words they are; a note and a fact know only the name."""
    match source:
        case Turn():
            return tuple((part.speaker_id, part.speaker) for part in source.parts)
        case Note():
            return (("", source.who),)
        case Segment():
            return tuple(("", name) for name in dict.fromkeys(fact.speaker for fact in source.facts))


def source_kind(source: PassageSource) -> PassageKind:
    """Return what sort of thing it is."""
    match source:
        case Turn():
            return PassageKind.TURN
        case Note():
            return PassageKind.NOTE
        case Segment():
            return PassageKind.SEGMENT


def text_to_embed(source: PassageSource) -> str | None:
    """Return what is embedded of it, or None where there is too little in it to be like anything."""
    text = " ".join(source_text(source).split())
    if isinstance(source, Turn) and source.kind in {TurnKind.MEMBERSHIP, TurnKind.EFFECT}:
        return None
    if len(normalized_words(text)) < _LEAST_WORDS:
        return None
    if isinstance(source, Segment):
        return text
    return f"{', '.join(dict.fromkeys(name for _, name in source_speakers(source)))}: {text}"


# 'Yeah, exactly' is like every other agreement and like nothing one searches for.
_LEAST_WORDS = 4


def speaker_matches(wanted: str, speakers: Iterable[tuple[str, str]]) -> bool:
    """Return whether one of (id, name) is meant: by the whole id, or by every word of `wanted` being in the name."""
    words = set(normalized_words(wanted))
    return bool(words) and any(
        wanted.strip() == speaker_id or words <= set(normalized_words(name)) for speaker_id, name in speakers
    )


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How common terms are: `passages` with each of them, out of about `total`. Terms nobody used are absent."""

    passages: Mapping[str, int]
    total: int


class RecallIndex(Protocol):
    """Where passages (turns, notes, segments) are found again. Raises `StoreError` on any failure."""

    async def count(self, terms: Sequence[str]) -> TermCounts:
        """Return how many passages have each term in their own words or beside them."""

    async def full_text(
        self, terms: Sequence[str], scope: Scope, *, limit: int, newest: int | None = None
    ) -> Sequence[PassageId]:
        """Return the passages with any of the terms, best first by BM25, neighbours counting half.

        `newest`: look at about so many of the newest alone.
        """

    async def newest(
        self, scope: Scope, *, limit: int, terms: Sequence[str] = (), announcing: bool = False
    ) -> Sequence[PassageId]:
        """Return what was said last in the scope, newest first.

        `terms`: with all of these in their own words. `announcing`: only turns that say that something changed.
        """

    async def find_similar(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """Return the passages whose embeddings by `model` are most like `vector`, with their cosine, best first."""

    async def passages(self, ids: Sequence[PassageId]) -> Sequence[Passage]:
        """Return these passages in this order; those that are gone are missing."""

    async def find_turns(self, session_id: SessionId, seqs: Sequence[Seq]) -> Sequence[PassageId]:
        """Return the passages of these turns, in order of seq."""
