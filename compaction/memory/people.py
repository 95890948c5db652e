"""Extracts and merges lasting facts that people state about themselves, for example where they live. Pure. English.

When a batch is folded, rules extract at most four facts from its turns. A fact keeps the speaker's own words and the
turn. A later statement about the same topic supersedes an earlier one, which is kept as history. Questions, wishes,
guesses and statements about other people are ignored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.language.correction import asks
from compaction.language.statements import PATTERNS, RETRACTIONS, UNLIKELY_BEFORE, UNLIKELY_VALUE, same_domain
from compaction.language.wording import as_sentence, base, is_stopword, plain, sentences, words
from compaction.model import Seq, SessionId, TurnKind
from compaction.payload import PartKind, PayloadPart, data_part
from compaction.speaker_names import plain_name
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compaction.model import Turn

# The design page ('Participant memory') asks for a few lasting facts per batch.
MAX_FACTS_PER_BATCH = 4
MAX_FACT_CHARS = 160
MAX_VALUE_WORDS = 7
HEAD = "What the people here have said of themselves at other times, in their own words:"


@dataclass(frozen=True, slots=True)
class PersonFact:
    """One lasting fact that a person said about themselves. `at`: UTC epoch seconds.

    `id` consists of session, turn and position. A topic has one current `value`. `text`: the statement in the person's
    own words. `superseded_by`: the later fact or turn that ended this fact.
    """

    id: str
    person_id: str
    name: str
    topic: str
    value: str
    text: str
    session_id: SessionId
    turn_seq: Seq
    at: float
    superseded_by: str | None = None
    superseded_at: float | None = None
    weight: float = 1.0

    @property
    def is_current(self) -> bool:
        """Return whether the fact is neither superseded nor retracted."""
        return self.superseded_at is None


@dataclass(frozen=True, slots=True)
class Retraction:
    """A person said that a fact about them is no longer true. `value`: the retracted value, or empty for any value."""

    person_id: str
    topic: str
    value: str
    turn: str
    at: float


@dataclass(frozen=True, slots=True)
class ExtractedFacts:
    """The facts and retractions of a batch, in the order in which they were said."""

    facts: tuple[PersonFact, ...] = ()
    retractions: tuple[Retraction, ...] = ()

    @property
    def people(self) -> frozenset[str]:
        """Return the ids of the people whose facts or retractions these are."""
        return frozenset({fact.person_id for fact in self.facts} | {each.person_id for each in self.retractions})


@dataclass(frozen=True, slots=True)
class FactChanges:
    """How newly extracted facts change the stored facts.

    `added`: new facts. A new fact that is already outdated is marked as superseded. `superseded`: stored facts that are
    superseded now.
    """

    added: tuple[PersonFact, ...] = ()
    superseded: tuple[PersonFact, ...] = ()


def extract_person_facts(
    turns: Iterable[Turn], *, session_id: SessionId, most: int = MAX_FACTS_PER_BATCH
) -> ExtractedFacts:
    """Return at most `most` facts of a batch, those with the highest weight, in the order of talk. Deterministic.

    Within the batch, a later statement about the same topic replaces an earlier one.
    """
    found: dict[tuple[str, str, str], PersonFact] = {}
    retractions: list[Retraction] = []
    for turn in turns:
        if turn.kind is not TurnKind.SPEECH or turn.tombstone:
            continue
        count = 0
        for said in turn.parts:
            for sentence in sentences(said.text):
                if asks(sentence):
                    continue
                for topic, value, text, weight in _statements(sentence):
                    fact = PersonFact(
                        id=f"{session_id}#{turn.seq}.{count}",
                        person_id=said.speaker_id,
                        name=plain(said.speaker),
                        topic=topic,
                        value=value,
                        text=text,
                        session_id=session_id,
                        turn_seq=turn.seq,
                        at=turn.started_at,
                        weight=weight,
                    )
                    count += 1
                    domain = value if topic == PREFERENCE else ""
                    found.pop((said.speaker_id, topic, domain), None)
                    found[said.speaker_id, topic, domain] = fact
                retractions += [
                    Retraction(said.speaker_id, topic, value, f"{session_id}#{turn.seq}", turn.started_at)
                    for topic, value in _retracted(sentence)
                ]
    best = sorted(found.values(), key=lambda each: (-each.weight, each.turn_seq, each.id))[:most]
    return ExtractedFacts(tuple(sorted(best, key=_order)), tuple(retractions))


PREFERENCE = "preference"


def merge_facts(extracted: ExtractedFacts, known: Iterable[PersonFact]) -> FactChanges:
    """Return how extracted facts change the known ones. `known`: all facts of these people, including superseded facts.

    A fact that is repeated or extracted a second time changes nothing.
    """
    before = tuple(known)
    ids = {each.id for each in before}
    current = {each.id: each for each in before if each.is_current}
    history = {each.id: each for each in before if not each.is_current}
    added: dict[str, PersonFact] = {}
    superseded: dict[str, PersonFact] = {}

    def end(fact: PersonFact, by: str, at: float) -> None:
        ended = replace(fact, superseded_by=by, superseded_at=at)
        current.pop(fact.id, None)
        history[fact.id] = ended
        if fact.id in added:
            added[fact.id] = ended
        else:
            superseded[fact.id] = ended

    events: list[PersonFact | Retraction] = [*extracted.facts, *extracted.retractions]
    for each in sorted(events, key=lambda event: event.at):
        if isinstance(each, Retraction):
            for fact in [one for one in current.values() if _retracts(each, one)]:
                end(fact, each.turn, each.at)
            continue
        if each.id in ids:
            continue
        rivals = [one for one in current.values() if contradicts(each, one)]
        if any(_same_value(each.value, one.value) for one in current.values() if _same_topic(each, one)):
            continue
        added[each.id] = each
        current[each.id] = each
        over = _ended_before(each, rivals, history.values())
        if over is not None:
            end(each, *over)
            continue
        for fact in rivals:
            end(fact, each.id, each.at)
    return FactChanges(tuple(sorted(added.values(), key=_order)), tuple(sorted(superseded.values(), key=_order)))


def _ended_before(
    fact: PersonFact, rivals: Iterable[PersonFact], history: Iterable[PersonFact]
) -> tuple[str, float] | None:
    """Return what ended a fact that was extracted late, and when it ended. Returns None if the fact is still current.

    A fact is ended by a later statement with another value, or by whatever ended a known fact of the same topic
    afterwards.
    """
    ends = [(one.at, one.id) for one in rivals if one.at > fact.at]
    for one in history:
        about_it = _same_topic(fact, one) and (_same_value(fact.value, one.value) or contradicts(fact, one))
        if about_it and one.superseded_by is not None and (one.superseded_at or 0.0) > fact.at:
            ends.append((one.superseded_at or 0.0, one.superseded_by))
    at, by = min(ends, default=(0.0, ""))
    return (by, at) if ends else None


def contradicts(one: PersonFact, other: PersonFact) -> bool:
    """Return whether two facts can't both be true: same person and topic, but different values."""
    if not _same_topic(one, other) or _same_value(one.value, other.value):
        return False
    return one.topic != PREFERENCE or same_domain(one.value, other.value)


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
    of_person: defaultdict[str, list[PersonFact]] = defaultdict(list)
    for fact in sorted(facts, key=lambda each: (-each.weight, -each.at, each.id)):
        if fact.is_current and fact.person_id in names and len(of_person[fact.person_id]) < most_each:
            of_person[fact.person_id].append(fact)
    chosen: list[PersonFact] = []
    made: PayloadPart | None = None
    for rank in range(most_each):
        for person_id in names:
            if rank >= len(of_person[person_id]):
                continue
            candidate = [*chosen, of_person[person_id][rank]]
            longer = person_facts_part(candidate, names)
            if longer.tokens > max_tokens:
                return made
            chosen, made = candidate, longer
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
        refs=tuple(fact.id for fact in facts),
    )


def _statements(sentence: str) -> list[tuple[str, str, str, float]]:
    """Return (topic, value, statement, weight) for each thing that a sentence says about its speaker."""
    found: list[tuple[int, tuple[str, str, str, float]]] = []
    for pattern in PATTERNS:
        for match in pattern.regex.finditer(sentence):
            before = sentence[: match.start()]
            value = _value(match["value"])
            if UNLIKELY_BEFORE.search(before) or value is None or (pattern.rejects and pattern.rejects.search(value)):
                continue
            thing = plain(match.groupdict().get("thing") or "").casefold()
            if thing and all(is_stopword(word) for word in words(thing)):
                continue
            topic = pattern.topic.format(thing=" ".join(base(word) for word in words(thing)), value=value.casefold())
            text = as_sentence(_capital(match.group().strip(" ,;:-–—")), MAX_FACT_CHARS)
            found.append((match.start(), (topic, value, text, pattern.weight)))
    # If several patterns match at the same position, use the first one, which is the most specific.
    first: dict[int, tuple[str, str, str, float]] = {}
    for start, each in found:
        first.setdefault(start, each)
    return [first[start] for start in sorted(first)]


def _value(written: str) -> str | None:
    """Return a value in its stored form, or None if the text is not a value: a pronoun, a filler word or half a
    sentence.
    """
    value = plain(written).strip(" ,;:-–—'\"")
    count = len(value.split())
    if not 1 <= count <= MAX_VALUE_WORDS or UNLIKELY_VALUE.search(value):
        return None
    return value if any(not is_stopword(word) for word in words(value)) else None


def _retracted(sentence: str) -> list[tuple[str, str]]:
    return [
        (topic, plain(match.groupdict().get("value") or "").strip(" .,!"))
        for topic, regex in RETRACTIONS
        if (match := regex.search(sentence)) is not None and not UNLIKELY_BEFORE.search(sentence[: match.start()])
    ]


def _retracts(retraction: Retraction, fact: PersonFact) -> bool:
    if fact.person_id != retraction.person_id or fact.topic != retraction.topic or fact.at > retraction.at:
        return False
    return not retraction.value or _same_value(fact.value, retraction.value)


def _same_topic(one: PersonFact, other: PersonFact) -> bool:
    return one.person_id == other.person_id and one.topic == other.topic


def _same_value(one: str, other: str) -> bool:
    return _bare(one) == _bare(other)


def _bare(value: str) -> tuple[str, ...]:
    kept = [base(word) for word in words(value)]
    return tuple(word for word in kept if word not in {"a", "an", "the", "in", "on", "at"}) or tuple(kept)


def _capital(text: str) -> str:
    text = re.sub(r"\bi\b", "I", text.strip())
    return text[:1].upper() + text[1:]


def _order(fact: PersonFact) -> tuple[float, int, str]:
    return (fact.at, fact.turn_seq, fact.id)
