"""Lasting facts that people say about themselves: where they live, what they are called, what they can't eat. Pure.

They are the facts of kind `lasting` of a folded batch whose owner is the person who said them. A fact ends when a later
one closes it; ended ones are kept as history. Without a model no fact has an owner, so nothing is remembered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.language.text import plain
from compaction.memory.passage import PassageKind
from compaction.memory.quotes import Citation
from compaction.model import SAID, Fact, FactKind, Importance, Seq, SessionId, Turn
from compaction.payload import PartKind, PayloadPart, data_part
from compaction.speaker_names import plain_name
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compaction.summary.port import KnownFact

# A few durable facts of each batch (docs/memory.md, 'What people say of themselves').
MAX_FACTS_PER_BATCH = 4
HEAD = "What the people here have said of themselves at other times, in their own words:"


@dataclass(frozen=True, slots=True)
class PersonFact:
    """One lasting fact that a person said about themselves. `at`: UTC epoch seconds.

    `id`: the fact of a segment that it is, as `segment_id#index`, or a name that no such fact has. `channel_id`: the
    voice channel in which it was said, None if unknown; stored facts have it from their session. `superseded_by`: the
    fact that ended it.
    """

    id: str
    person_id: str
    name: str
    text: str
    session_id: SessionId
    turn_seq: Seq
    at: float
    importance: Importance = 2
    channel_id: int | None = None
    superseded_by: str | None = None
    superseded_at: float | None = None

    @property
    def is_current(self) -> bool:
        """Return whether it was not superseded."""
        return self.superseded_at is None


@dataclass(frozen=True, slots=True)
class Audience:
    """Who hears a reply. `channels`: the voice channels in which all of them could have been. `asker_id`: the one of
    them who asks, None if that is not one person.
    """

    guild_id: int | None
    channels: frozenset[int] = frozenset()
    asker_id: str | None = None

    def may_hear(self, fact: PersonFact) -> bool:
        """Return whether a fact may be told: all of them could have heard it, or the person that it is about asks."""
        return fact.channel_id in self.channels or fact.person_id == self.asker_id


@dataclass(frozen=True, slots=True)
class EndedFacts:
    """The facts that a person's statement ends. `ids`: which; `by`: the fact that does; `at`: when it was said.

    `texts`: what the person says in them. It may be known from another session, where it was told first.
    """

    person_id: str
    ids: frozenset[str]
    by: str
    at: float
    texts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ExtractedFacts:
    """The facts of a batch about people, and which earlier ones they end, in the order in which they were said."""

    facts: tuple[PersonFact, ...] = ()
    ended: tuple[EndedFacts, ...] = ()

    @property
    def people(self) -> frozenset[str]:
        """Return the ids of the people in it."""
        return frozenset({fact.person_id for fact in self.facts} | {each.person_id for each in self.ended})


@dataclass(frozen=True, slots=True)
class FactChanges:
    """How extracted facts change the known ones.

    `added`: new facts; those that were outdated when they came are superseded already. `superseded`: known facts that
    are superseded now.
    """

    added: tuple[PersonFact, ...] = ()
    superseded: tuple[PersonFact, ...] = ()


def extract_person_facts(
    facts: Iterable[KnownFact],
    turns: Iterable[Turn],
    *,
    session_id: SessionId,
    superseded: Mapping[str, Fact],
) -> ExtractedFacts:
    """Return what the facts of a batch say about people: the most important of them, in the order of talk.

    `turns`: the turns of the batch, which tell who said a fact. `superseded`: the session's facts that these supersede,
    by their refs.
    """
    speech = {turn.seq: turn for turn in turns if turn.kind in SAID and not turn.tombstone}
    found: list[PersonFact] = []
    ended: list[EndedFacts] = []
    for each in facts:
        fact = each.fact
        person_id = _speaker_id(fact, speech)
        if person_id is None or fact.note_id is not None or not fact.text:
            continue
        if fact.closes:
            old = (superseded[ref] for ref in fact.closes if ref in superseded)
            texts = (_said(one.text) for one in old if one.speaker == fact.speaker and _is_of_speaker(one))
            ended.append(EndedFacts(person_id, frozenset(fact.closes), each.ref, fact.at, frozenset(texts)))
        if _is_of_speaker(fact):
            found.append(
                PersonFact(
                    id=each.ref,
                    person_id=person_id,
                    name=plain(fact.speaker),
                    text=fact.text,
                    session_id=session_id,
                    turn_seq=fact.turn_seq,
                    at=fact.at,
                    importance=fact.importance,
                )
            )
    best = sorted(found, key=lambda one: (-one.importance, _order(one)))[:MAX_FACTS_PER_BATCH]
    return ExtractedFacts(tuple(sorted(best, key=_order)), tuple(ended))


def _is_of_speaker(fact: Fact) -> bool:
    """Return whether a fact is a lasting one that its speaker told of themselves."""
    return fact.kind is FactKind.LASTING and fact.owner.casefold() == fact.speaker.casefold()


def _speaker_id(fact: Fact, speech: Mapping[Seq, Turn]) -> str | None:
    said = (part for seq in fact.turns if seq in speech for part in speech[seq].parts)
    return next((part.speaker_id for part in said if plain(part.speaker) == plain(fact.speaker)), None)


def merge_facts(extracted: ExtractedFacts, known: Iterable[PersonFact]) -> FactChanges:
    """Return how extracted facts change the known ones. `known`: all facts of these people, superseded ones too.

    A fact that is said again or extracted again changes nothing.
    """
    before = {each.id: each for each in known}
    facts = dict(before)
    for each in extracted.facts:
        theirs = (one for one in facts.values() if one.person_id == each.person_id and one.is_current)
        if each.id not in facts and _said(each.text) not in {_said(one.text) for one in theirs}:
            facts[each.id] = each
    for gone in extracted.ended:
        for one in list(facts.values()):
            is_ended = one.id in gone.ids or (_said(one.text) in gone.texts and one.at < gone.at)
            if is_ended and one.is_current and one.person_id == gone.person_id:
                facts[one.id] = replace(one, superseded_by=gone.by, superseded_at=gone.at)
    changed = sorted((each for each in facts.values() if before.get(each.id) != each), key=_order)
    return FactChanges(
        tuple(each for each in changed if each.id not in before), tuple(each for each in changed if each.id in before)
    )


def _said(text: str) -> str:
    return text.casefold().rstrip(".!")


def participants_part(
    present: Sequence[tuple[str, str]],
    facts: Iterable[PersonFact],
    *,
    max_tokens: int,
    most_each: int,
) -> PayloadPart | None:
    """Return the prompt section about the people present, or None if nothing is known about them.

    `present`: pairs of id and display name, in the order of the section. The section fits within `max_tokens`. It first
    takes everybody's most important fact (highest weight, then newest), then everybody's second, and so on.
    """
    names = dict(present)
    best = sorted(facts, key=lambda each: (-each.importance, -each.at, each.id))
    of_person = {
        person_id: [each for each in best if each.is_current and each.person_id == person_id][:most_each]
        for person_id in names
    }
    by_rank = (own[rank] for rank in range(most_each) for own in of_person.values() if rank < len(own))
    chosen: list[PersonFact] = []
    made: PayloadPart | None = None
    for each in by_rank:
        chosen.append(each)
        longer = person_facts_part(chosen, names)
        if longer.tokens > max_tokens:
            break
        made = longer
    return made


def person_facts_part(facts: Sequence[PersonFact], names: Mapping[str, str]) -> PayloadPart:
    """Return the prompt section with these facts, one line per person, in this order.

    `names`: current display names by id. For a person who is not in `names`, the name stored in the fact is used.
    """
    lines: dict[str, list[str]] = {}
    for fact in facts:
        lines.setdefault(fact.person_id, []).append(fact.text)
    own = {fact.person_id: fact.name for fact in facts}
    lines_of_people = [
        f"{plain_name(names.get(person_id, own[person_id]))}: {' '.join(map(inline, texts))}"
        for person_id, texts in lines.items()
    ]
    return data_part(
        PartKind.PARTICIPANTS,
        "\n".join([HEAD, *lines_of_people]),
        refs=tuple(Citation(PassageKind.TURN, fact.session_id, str(fact.turn_seq)).ref for fact in facts),
    )


def _order(fact: PersonFact) -> tuple[float, int, str]:
    return (fact.at, fact.turn_seq, fact.id)
