"""Checks what can be checked of a model's facts: names and numbers (`sources`), the sign, length. Pure.

A check finds only what is certain; what it can't tell is left to the model. A fact that denies what its turns affirm,
or the other way round, is replaced by the speaker's own words. Speaker and time come from the first cited turn; in a
turn of several people, the speaker is who has the fact's words (docs/memory.md, 'Checks').
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.language.languages import LANGUAGES
from compaction.language.meaning import meaning
from compaction.language.terms import terms
from compaction.language.text import as_sentence, plain, sentences, whole_sentences, words
from compaction.model import Fact, FactKind, Seq
from compaction.summary.port import MAX_FACT_CHARS, MAX_FACTS
from compaction.summary.sources import unfounded, without_ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compaction.language.meaning import Meaning
    from compaction.model import Turn, TurnPart
    from compaction.summary.answer import ModelFact
    from compaction.summary.sources import Sources

_MAX_SUBJECT_CHARS = 60
# Denying a thought does not deny the thing: 'I don't think Bob comes'.
_THOUGHTS = frozenset(each.stem(word) for each in LANGUAGES for word in each.thoughts)
# An order to a model, and words that make a report of it ('Bob told the companion to ignore its rules').
_ORDER = re.compile(
    r"\b(?:ignor|disregard|overrid|bypass|forget|vergiss|vergess)\w*\b(?=[^.!?]{0,30}\b(?:all|any|previous|prior|earlier|"
    r"above|system|alle|vorherig|bisherig))[^.!?]{0,50}\b(?:instruction|prompt|guideline|anweisung)\w*|"
    r"^\W*(?:from now on\W+)?(?:always |never )?(?:obey|pretend|act as|reveal|do whatever)\b|"
    r"^\W*you (?:must|should|shall|are (?:now|to)|have to)\b|\bobeys? (?:only )?\w+ (?:in everything|alone|blindly)",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"\b(?:said|says?|told|tells?|ask(?:s|ed)?|want(?:s|ed)?|tr(?:y|ies|ied)|jok(?:es|ed)|order(?:s|ed)|demand(?:s|ed)|"
    r"suggest(?:s|ed)|claim(?:s|ed)|request(?:s|ed)|reads?|shows?|showed|sagt?e?|bat|bittet|wollte|forderte)\b",
    re.IGNORECASE,
)
# Where one clause of a sentence ends and the next begins.
_JOINTS = "|".join(sorted(joint for each in LANGUAGES for joint in each.joints))
_CLAUSE_ENDS = re.compile(rf"[,;:–—]\s|\s*[()]\s*|\s(?:{_JOINTS})\s", re.IGNORECASE)
# A clause with so few words beside the one that another denies is about nothing else.
_LITTLE_ELSE = 2


def gives_orders(text: str) -> bool:
    """Return whether a sentence of a text orders a model to do something, instead of reporting that somebody did."""
    return any(
        (order := _ORDER.search(each)) is not None and _REPORT.search(each, 0, order.start()) is None
        for each in sentences(text)
    )


def checked_facts(
    written: Sequence[ModelFact], turns: Sequence[Turn], sources: Sources, labels: Mapping[str, str]
) -> tuple[Fact, ...]:
    """Return the first sixteen of the model's facts that pass, in the order of talk.

    `labels`: the refs of the facts that its prompt showed.

    A refused fact of importance 3 is replaced by the words of the turns that it cites.
    """
    by_seq = {turn.seq: turn for turn in turns if turn.parts}
    also_names = frozenset(
        name for each in written for sentence in sentences(each.text) for name in meaning(sentence).names
    )
    # What two people say in the same words are two facts.
    facts: dict[tuple[str, str, str], Fact] = {}
    for each in written:
        if len(facts) == MAX_FACTS:
            break
        cited = [by_seq[Seq(seq)] for seq in sorted(set(each.turns)) if Seq(seq) in by_seq]
        if not cited:
            continue
        fact = _fact(each, cited, sources, also_names, labels)
        if fact is not None:
            facts.setdefault((fact.speaker, fact.subject, fact.text), fact)
    return tuple(sorted(facts.values(), key=lambda fact: fact.turns))


def _fact(
    written: ModelFact, cited: Sequence[Turn], sources: Sources, also_names: frozenset[str], labels: Mapping[str, str]
) -> Fact | None:
    if gives_orders(written.text):
        return None
    subject = written.subject if not unfounded(written.subject, sources, also_names) else ""
    part = _part_of(cited[0], subject, written.text)
    fact = Fact(
        turns=tuple(turn.seq for turn in cited),
        # What is only reported as an order to a model decides nothing.
        kind=FactKind.OTHER if _ORDER.search(written.text) else written.kind,
        speaker=plain(part.speaker),
        at=cited[0].started_at,
        text=_closed(written.text),
        supersedes=tuple(dict.fromkeys(labels[label] for label in written.supersedes if label in labels)),
        subject=plain(subject)[:_MAX_SUBJECT_CHARS].strip() or plain(part.speaker),
        importance=written.importance,
        quoted=False,
    )
    # One turn may answer or correct another, so only the sign of a fact from a single turn is certain.
    said = [each.text for each in cited[0].parts] if len(cited) == 1 else []
    is_good = bool(fact.text) and not unfounded(fact.text, sources, also_names)
    if is_good and not turns_the_sign(fact.text, said):
        return fact
    return _quoted(fact, cited) if is_good or fact.importance == 3 else None


def turns_the_sign(text: str, said: Iterable[str]) -> bool:
    """Return whether a text denies what was said, or affirms what was denied; only where that is certain.

    That is where one of them has a negation, or another word that says that something is over, and the other has
    none, and the word after the negation is in both. Questions deny and affirm nothing.
    """
    told = [each for _, each in clauses(text) if not each.asks]
    spoken = [each for one in said for _, each in clauses(one)]
    stated = [each for each in spoken if not each.asks]
    if any(each.negated for each in told):
        return not any(map(may_deny, spoken)) and _shares_denied(told, stated)
    return not any(map(may_deny, told)) and _shares_denied(stated, told)


def clauses(text: str, names: frozenset[str] = frozenset()) -> list[tuple[str, Meaning]]:
    """Return the clauses of a text and what each says. `names`: in lower case.

    The clauses of a question all ask; one that supposes something ('if Ada can't come') states nothing either.
    """
    said = [
        (clause, meaning(clause, names), meaning(sentence).asks)
        for sentence in sentences(text)
        for clause in _CLAUSE_ENDS.split(sentence)
        if clause
    ]
    return [(clause, replace(each, asks=asks or each.supposes)) for clause, each, asks in said]


def may_deny(said: Meaning) -> bool:
    """Return whether a clause denies something, or says in other words that it is over."""
    return said.negated or said.ends or said.announces


def _shares_denied(denying: Sequence[Meaning], affirming: Sequence[Meaning]) -> bool:
    denied = frozenset(each for one in denying for each in one.denied) - _THOUGHTS
    # What is also said without being denied is not certain: 'I can't come on Friday, I come on Saturday'.
    also = frozenset(each for one in denying if not one.negated for each in one.about)
    return any(
        _is_of_one_thing(one, each, shared)
        for one in denying
        for each in affirming
        if (shared := (denied - also) & one.denied & each.about)
    )


def _is_of_one_thing(denying: Meaning, affirming: Meaning, shared: frozenset[str]) -> bool:
    """Return whether two clauses have more in common than the `shared` word, or say nearly nothing else.

    'It isn't quite enough' does not deny that a gate cracked as two of three hummed well enough.
    """
    common = (denying.about & affirming.about) - shared
    return bool(common) or len(affirming.about - shared) <= _LITTLE_ELSE


def best_matching_part(text: str, turns: Sequence[Turn]) -> tuple[Turn, TurnPart]:
    """Return the part of these turns that shares most words with a text (the first of equal ones), and its turn."""
    about = set(map(without_ending, words(text)))

    def shared(place: tuple[Turn, TurnPart]) -> int:
        return len(about.intersection(map(without_ending, words(place[1].text))))

    return max(((turn, part) for turn in turns for part in turn.parts), key=shared)


def _part_of(turn: Turn, subject: str, text: str) -> TurnPart:
    """Return whose words a fact is from: the subject's own if nobody has more of them, else those that match best."""
    own = [part for part in turn.parts if plain(part.speaker).casefold() == subject.casefold()]
    others = tuple(part for part in turn.parts if part not in own)
    if not own or not others:
        return best_matching_part(text, [turn])[1]
    about = set(terms(text)) - set(terms(subject))
    shared = [len(about.intersection(terms(part.text))) for part in (own[0], *others)]
    # 'Bob is allergic to nuts', said by Ada, is not Bob's because he says 'Yeah, sure' in the same turn.
    if 0 < shared[0] == max(shared):
        return own[0]
    return best_matching_part(text, [replace(turn, parts=others)])[1]


def _quoted(fact: Fact, cited: Sequence[Turn]) -> Fact | None:
    """Return the fact in the words of whom it matches best, or None if none of their sentences is short enough.

    All that they say in the cited turns if it is short, else their best turn or sentence. What the fact would supersede
    stays: the words alone may not tell it.
    """
    turn, part = best_matching_part(fact.text, cited)
    own = [(each, said.text) for each in cited for said in each.parts if said.speaker_id == part.speaker_id]
    joined = " ".join(as_sentence(text, len(text) + 1) for _, text in own)
    if len(joined) <= MAX_FACT_CHARS:
        text, turns = joined, tuple(dict.fromkeys(each.seq for each, _ in own))
    else:
        whole = [as_sentence(each, len(each) + 1) for each in (part.text, *_best_first(part.text, fact.text))]
        text, turns = next((each for each in whole if 0 < len(each) <= MAX_FACT_CHARS), ""), (turn.seq,)
    if not text:
        return None
    started_at = next(each.started_at for each in cited if each.seq == turns[0])
    return replace(
        fact,
        turns=turns,
        speaker=plain(part.speaker),
        at=started_at,
        text=text,
        quoted=True,
        supersedes=(),
    )


def _best_first(text: str, wanted: str) -> list[str]:
    about = set(map(without_ending, words(wanted)))
    return sorted(sentences(text), key=lambda each: -len(about.intersection(map(without_ending, words(each)))))


def _closed(text: str) -> str:
    """Return a fact as whole sentences of at most 240 characters; empty if not even one is so short."""
    return whole_sentences(as_sentence(text, len(text) + 1), MAX_FACT_CHARS)
