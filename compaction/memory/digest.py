"""A digest of a session, or of a stretch of it, for people: what concerns the reader, decisions, what is open, what it
was about, who was there.

It is made of what a model has written: the facts that hold, by kind, and the chapters. Without a model it has what is
certain: who was there, when, and what was said last. What people state about themselves (`FactKind.LASTING`) is in no
digest, nor what a model marks as told in confidence (`FactKind.CONFIDED`), its turns, and what of a chapter may tell of
it: who reads the digest may not have been meant to hear it. So nothing is quoted for who was away that no model has
read, where there is one. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.language.text import cut_at_word, words
from compaction.memory.chapters import chapters_of, tell_chapters
from compaction.model import SAID, Fact, FactKind, Segment, Seq, SessionId, Turn, TurnKind
from compaction.summary.folded import closed_refs, known_facts_of, make_segment
from compaction.summary.port import REACH_TURNS, Fold, FoldRequest, KnownFact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


# What fits into one message of Discord, each part in one breath.
ABOUT_TOKENS = 300
MOST_FACTS = 5
# Decisions and open questions have lines of their own, and what people told of themselves has none.
_NOT_ABOUT = frozenset({FactKind.DECISION, FactKind.OPEN, FactKind.LASTING})
# As many turns as one fold has: a model is asked only if more of the newest ones are not folded.
STALE_TURNS = 10
# So many of the newest turns go to a model at once.
MOST_FOLDED_AT_ONCE = 80
# So many of the last turns are quoted, and so much of each.
_LAST = 3
_LAST_CHARS = 200


@dataclass(frozen=True, slots=True)
class DigestLine:
    """One line of a digest. `at`: UTC epoch seconds. `speaker`: whose words `text` has; empty if it has its own.
    `seq`: the turn in which it was said, if it is one.
    """

    at: float
    text: str
    speaker: str = ""
    seq: Seq | None = None


@dataclass(frozen=True, slots=True)
class DigestPerson:
    """Somebody who was there, by their last name. `spoken_s`: for how long they spoke."""

    name: str
    spoken_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Digest:
    """What people read of a session or a stretch of it. Times are UTC epoch seconds. `turn_count`: how often people
    spoke. `people`: who was there, in the order in which they first appeared. `yours`: decisions and open questions
    that concern the reader, which stand nowhere else. `to_do`: those that somebody has to see to. `last`: the last
    words that were not for the bot. `page`: the address of the session on the dashboard, if it has one.
    """

    started_at: float
    ended_at: float
    turn_count: int
    people: tuple[DigestPerson, ...] = ()
    about: tuple[DigestLine, ...] = ()
    yours: tuple[DigestLine, ...] = ()
    decisions: tuple[DigestLine, ...] = ()
    to_do: tuple[DigestLine, ...] = ()
    open: tuple[DigestLine, ...] = ()
    last: tuple[DigestLine, ...] = ()
    page: str = ""

    @property
    def is_empty(self) -> bool:
        """Return whether nobody said anything that may be told."""
        return not self.turn_count

    @property
    def is_certain(self) -> bool:
        """Return whether it has nothing that a model has written."""
        return not (self.about or self.yours or self.decisions or self.to_do or self.open)


@dataclass(frozen=True, slots=True)
class DigestParts:
    """What a digest is made of. `turns`: all turns of the stretch; those that may not be told are tombstones.

    `segments`: those of a model that lie in the stretch, in order. `closed`: the refs of facts that later ones closed.
    `needs_model`: nothing is quoted that no model has read.
    """

    turns: tuple[Turn, ...]
    segments: tuple[Segment, ...]
    closed: frozenset[str]
    needs_model: bool = False

    @property
    def stale(self) -> tuple[Turn, ...]:
        """Return the newest turns if so many of them are in no segment that a model is worth asking, else none."""
        covered = max((each.end for each in self.segments), default=0)
        newest = tuple(turn for turn in self.turns if turn.seq >= covered)[-MOST_FOLDED_AT_ONCE:]
        return newest if sum(map(_is_said, newest)) >= (1 if self.needs_model else STALE_TURNS) else ()


def digest_parts(turns: Sequence[Turn], segments: Sequence[Segment], *, needs_model: bool = False) -> DigestParts:
    """Return what the digest of these turns is made of. `turns`: a stretch without a gap; withheld ones are tombstones.

    `segments`: those of the session, without what may hold withheld words; one without a gist is used for its facts
    alone. `needs_model`: see `DigestParts`.
    """
    if not turns:
        return DigestParts((), (), frozenset())
    first, end = turns[0].seq, turns[-1].seq + 1
    within = tuple(each for each in segments if each.is_by_model and first <= each.start < each.end <= end)
    return DigestParts(tuple(turns), within, closed_refs(segments), needs_model)


def request_for_digest(parts: DigestParts) -> FoldRequest:
    """Return the request to fold the stale turns. Call it only if there are some."""
    stale = parts.stale
    known = [each for segment in parts.segments for each in known_facts_of(segment)]
    return FoldRequest(
        start=stale[0].seq,
        turns=stale,
        known=tuple(each for each in known if each.ref not in parts.closed),
        chapters=tuple(line.text for line in _about(parts.segments, parts.closed)),
        heading=parts.segments[-1].heading if parts.segments else "",
        before=tuple(turn for turn in parts.turns if stale[0].seq - REACH_TURNS <= turn.seq < stale[0].seq),
    )


def make_digest(parts: DigestParts, fold: Fold | None = None, *, reader: str = "") -> Digest:
    """Return the digest. `fold`: what a model made of the stale turns, if it was asked. `reader`: the name of who reads
    it, if it is for one person.
    """
    segments = parts.segments
    if fold is not None and (stale := parts.stale):
        made = make_segment(
            request_for_digest(parts), fold, session_id=SessionId("digest"), revision=0, at=stale[-1].ended_at
        )
        segments = (*segments, made)
    known = [each for segment in segments for each in known_facts_of(segment)]
    # The turns in which somebody told something in confidence.
    hidden = {seq for each in known if each.fact.kind is FactKind.CONFIDED for seq in each.fact.turns}
    spoken = [turn for turn in parts.turns if _is_said(turn)]
    said = [turn for turn in spoken if turn.seq not in hidden]
    quotable = [
        turn for turn in said if not parts.needs_model or any(each.start <= turn.seq < each.end for each in segments)
    ]
    settled = [
        fact
        for fact in _standing(known, parts.closed, {turn.seq for turn in said})
        if fact.kind in {FactKind.DECISION, FactKind.OPEN}
    ]
    yours = [fact for fact in settled if _concerns(fact, reader)]
    others = [fact for fact in settled if fact not in yours]
    return Digest(
        started_at=parts.turns[0].started_at if parts.turns else 0.0,
        ended_at=parts.turns[-1].ended_at if parts.turns else 0.0,
        turn_count=sum(len(turn.parts) for turn in spoken),
        people=_people(parts.turns),
        about=_about(segments, parts.closed) if spoken else (),
        yours=_lines(yours),
        decisions=_lines(fact for fact in others if fact.kind is FactKind.DECISION and not _has_to_be_done(fact)),
        to_do=_lines(filter(_has_to_be_done, others)),
        open=_lines(fact for fact in others if fact.kind is FactKind.OPEN and not _has_to_be_done(fact)),
        last=tuple(
            DigestLine(turn.started_at, cut_at_word(part.text, _LAST_CHARS), part.speaker, turn.seq)
            for turn in [each for each in quotable if each.is_talk][-_LAST:]
            for part in turn.parts
        ),
    )


def _about(segments: Sequence[Segment], closed: Collection[str]) -> tuple[DigestLine, ...]:
    told = [
        replace(
            each,
            facts=tuple(
                fact.blanked() if fact.kind in _NOT_ABOUT or f"{each.id}#{at}" in closed else fact
                for at, fact in enumerate(each.facts)
            ),
        )
        for each in segments
    ]
    chapters = tell_chapters(chapters_of(told), max_tokens=ABOUT_TOKENS)
    return tuple(DigestLine(each.started_at, text, seq=each.start) for each, text in chapters)


def _is_said(turn: Turn) -> bool:
    return turn.kind in SAID and bool(turn.parts)


def _standing(known: Sequence[KnownFact], closed: frozenset[str], said: Collection[Seq]) -> list[Fact]:
    """Return the facts that hold and that people said, in the order of talk."""
    ended = closed | {ref for each in known for ref in each.fact.closes}
    facts = [each.fact for each in known if each.ref not in ended]
    said_facts = [fact for fact in facts if fact.note_id is None and fact.turns[-1] in said]
    return sorted(said_facts, key=lambda fact: (fact.at, fact.turn_seq))


def _concerns(fact: Fact, name: str) -> bool:
    """Return whether a fact is somebody's, or names them."""
    called = set(words(name))
    return bool(called) and called <= {*words(fact.owner), *words(fact.text.replace("'s", " ").replace("’s", " "))}


def _has_to_be_done(fact: Fact) -> bool:
    return bool(fact.owner or fact.until)


def _lines(standing: Iterable[Fact]) -> tuple[DigestLine, ...]:
    """Return the most important of these facts, in the order of talk."""
    found = list(standing)
    # Of equally important ones the later: what was settled or asked last matters to who reads on.
    best = sorted(range(len(found)), key=lambda place: (-found[place].importance, -place))[:MOST_FACTS]
    return tuple(_line(found[place]) for place in sorted(best))


def _line(fact: Fact) -> DigestLine:
    """Return what a fact says, with who has to do it and until when, where the sentence does not say so itself."""
    more = [each for each in (fact.owner, fact.until) if each and each.casefold() not in fact.text.casefold()]
    return DigestLine(fact.at, f"{fact.text} ({', '.join(more)})" if more else fact.text, seq=fact.turns[-1])


def _people(turns: Iterable[Turn]) -> tuple[DigestPerson, ...]:
    """Return everybody who spoke, came or left."""
    people: dict[str, DigestPerson] = {}
    for part in (part for turn in turns if turn.kind in SAID | {TurnKind.MEMBERSHIP} for part in turn.parts):
        before = people.get(part.speaker_id, DigestPerson(""))
        people[part.speaker_id] = DigestPerson(part.speaker, before.spoken_s + part.spoken_s)
    return tuple(people.values())
