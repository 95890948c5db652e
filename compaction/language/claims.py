"""Claims: the analysis of a fact's text, and the decision whether a later claim corrects an earlier one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.languages import stem
from compaction.language.lexicon import AROUND_A_FACT, SUBJECTLESS
from compaction.language.values import Kind, Value, is_hour, of_kind, same_value, values, without_times
from compaction.language.wording import (
    adds_to_something,
    announces_change,
    announces_replacement,
    as_sentence,
    asks,
    change_words,
    concepts,
    speaks_of_oneself,
    states_how_it_is,
    wants_instead,
    words,
)
from compaction.sentence_cache import sentence_cache

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compaction.language.wording import Concepts
    from compaction.model import Fact

# How much of their words two claims must share, apart from the values that differ. If the new claim announces a change,
# it is more than two of three words of the shorter claim, because 'the server room code' isn't 'the rehearsal room
# code'. If no change is announced, it is three quarters of all words of both.
_SHARED = 0.67
_SHARED_UNANNOUNCED = 0.75
# For dates a smaller share is enough, because two dates are confused less easily than two figures.
_SHARED_OF_A_DATE = 0.6
# The share that is enough if the same speaker says outright that they want something else instead.
_SHARED_BY_ONESELF = 0.5
# The share that is needed if a bare correction refers to a sentence that doesn't contain the old value.
_SHARED_WITH_REFERENCE = 0.5
_SAID_OF_ANYTHING = frozenset(stem(word) for word in SUBJECTLESS)
_NEGATION = re.compile(r"\b(?:not|no longer|never)\b|n['’]t\b", re.IGNORECASE)
_AROUND = frozenset(stem(word) for word in AROUND_A_FACT)
_REFERENCE = re.compile(r"^(?P<own>.+?) \((?:asked|about): (?P<reference>.+)\)\.?$")


@dataclass(frozen=True, slots=True)
class FactClaim:
    """A fact with the analysis of its text.

    `core`: the stems of its topics, without words that announce a change or introduce a fact. `values`: its figures,
    names, days and times. `reference`: for a bare correction, the quoted earlier sentence that it is about. `core`
    includes the topics of `reference`, but `values` does not include its values.
    """

    fact: Fact
    about: Concepts
    values: frozenset[Value]
    core: frozenset[str]
    reference: str
    announces_change: bool
    announces_replacement: bool
    wants_instead: bool
    adds: bool
    of_oneself: bool
    states: bool
    asks: bool


def claim_of(fact: Fact) -> FactClaim:
    """Return the claim that a fact makes."""
    text = fact.text
    referring = _REFERENCE.match(text)
    own = text if referring is None else referring["own"]
    replaces = announces_replacement(own)
    return FactClaim(
        fact=fact,
        about=concepts(text),
        values=values(own),
        core=_core(text),
        reference="" if referring is None else referring["reference"],
        announces_change=replaces or announces_change(own),
        announces_replacement=replaces,
        wants_instead=wants_instead(own),
        adds=adds_to_something(own),
        of_oneself=speaks_of_oneself(own),
        states=states_how_it_is(text),
        asks=asks(text),
    )


def with_reference(text: str, reference: str, *, max_chars: int) -> str:
    """Return a bare correction together with the sentence it is about: 'No, Friday now (about: The raid is on …)'."""
    how = "asked" if asks(reference) else "about"
    return as_sentence(f"{text.rstrip('.')} ({how}: {reference})", max_chars)


def reference_of(text: str) -> str:
    """Return the quoted earlier sentence that a fact is about, or an empty text if the fact has no such quotation."""
    referring = _REFERENCE.match(text)
    return "" if referring is None else referring["reference"]


def without_reference(text: str) -> str:
    """Return a fact's text without the quoted earlier sentence."""
    referring = _REFERENCE.match(text)
    return text if referring is None else as_sentence(referring["own"], len(text) + 1)


@sentence_cache(most=2_048)
def _core(text: str) -> frozenset[str]:
    topics = concepts(without_times(text)).topics - change_words(text)
    return frozenset(stem(topic) for topic in topics) - _AROUND


def corrects(new: FactClaim, old: FactClaim) -> bool:
    """Return whether `new`, which was said later, gives another value for what `old` says.

    The decision is cautious, because a corrected fact disappears from the summary. Both claims must be about the same
    thing, and the new one must have another value in place of the old value. Statements about oneself can be corrected
    only by the same speaker. Questions and screen notes never correct anything. Screen notes are never corrected, and a
    question only by its answer.
    """
    if new.adds or new.asks or new.fact.note_id is not None or old.fact.note_id is not None:
        return False
    if old.asks:
        # A question is no longer open once it has an answer.
        return bool(new.reference) and _same_words(new.reference, old.fact.text)
    same_speaker = new.fact.speaker == old.fact.speaker
    if not same_speaker and (new.of_oneself or old.of_oneself):
        return False
    if new.reference:
        return _corrects_its_reference(new, old)
    if new.core.isdisjoint(old.core) and new.values.isdisjoint(old.values):
        return False
    if not new.announces_change:
        return _restates_with_another_value(new, old)
    return _mentions_what_it_replaces(new, old) or _replaces_announced(new, old, same_speaker=same_speaker)


def _corrects_its_reference(new: FactClaim, old: FactClaim) -> bool:
    """Return whether a bare correction, with the sentence that it refers to, corrects `old`.

    'No, Sunday now (asked: The raid is still on Monday, right?)' corrects 'The raid is on Monday'.
    """
    if _same_words(new.reference, old.fact.text):
        return True
    if old.reference and _same_words(new.reference, old.reference):
        # `new` is a correction of the correction `old`.
        return any(mine != theirs for mine, theirs in _replaceable(new.values, old.values))
    of_core, of_values = _core(new.reference), values(new.reference)
    of_names, old_names = of_kind(of_values, Kind.NAME), of_kind(old.values, Kind.NAME)
    core, names = of_core & old.core, of_names & old_names
    if (not core and not names) or (of_names and old_names and not names):
        # The two have nothing in common, or are about different people.
        return False
    share = (len(core) + len(names)) / max(1, min(len(of_core), len(old.core)) + len(names))
    for mine, theirs in _replaceable(new.values, old.values):
        if theirs == mine:
            continue
        named = of_kind(of_values, theirs.kind)
        if any(same_value(each, theirs) for each in named):
            # The reference contains the old value itself.
            return True
        if not named and share > _SHARED_WITH_REFERENCE:
            return True
    # A new thing without a value: 'The kiosk instead (asked: We meet at the gate?)'
    things = bool(_core(new.fact.text) - of_core)
    return not new.values and things and len(core) + len(names) >= 2 and share > _SHARED_WITH_REFERENCE


def _replaceable(new: frozenset[Value], old: frozenset[Value]) -> Iterable[tuple[Value, Value]]:
    """Yield the pairs of a new and an old value where the new one could replace the old one.

    A figure may replace a time: 'Make that nine' may mean nine o'clock.
    """
    for theirs in old:
        for mine in new:
            if mine.kind is theirs.kind:
                yield mine, theirs
            elif theirs.kind is Kind.TIME and mine.kind is Kind.FIGURE and is_hour(mine):
                yield Value(Kind.TIME, f"{mine.what}:00"), theirs


def _same_words(one: str, other: str) -> bool:
    return words(one) == words(other)


def _mentions_what_it_replaces(new: FactClaim, old: FactClaim) -> bool:
    """Return whether `new` contains the subject, the old value and a new value.

    Example: 'The raid moved to Friday, Monday doesn't work'.
    """
    core, values = new.core & old.core, new.values & old.values
    if _replaced_kinds(new.values - old.values, values) and (core or _has_name(values)):
        return True
    # 'Wei brings the cake now, Ada can't make it': a name at the beginning of a sentence is not always recognised as a
    # name, so it may be among the topics (`core`).
    new_names = {value.what for value in of_kind(new.values, Kind.NAME)}
    known = new_names & ({value.what for value in of_kind(old.values, Kind.NAME)} | old.core)
    says_more = bool(new.core - old.core) or new_names > known
    return new.announces_replacement and bool(core) and bool(known) and says_more


def _replaces_announced(new: FactClaim, old: FactClaim, *, same_speaker: bool) -> bool:
    fresh, gone = new.values - old.values, old.values - new.values
    if _is_somebody_else(new, old):
        return True
    if _has_name(fresh) and _has_name(gone):
        # A different name usually means a different subject. Somebody who replaces a person names that person.
        return False
    values = new.values & old.values
    kinds = _replaced_kinds(fresh, gone)
    if kinds & {Kind.DATE, Kind.WEEKDAY} and new.announces_replacement and same_speaker and _has_name(values):
        # 'The Lisbon trip got moved to May' is about 'I'm flying to Lisbon in March', although the other words differ.
        return True
    if kinds:
        # A sentence that says outright that something was changed often names little of it, so general words are
        # ignored.
        whole = not new.announces_replacement
        share = _share(new.core if whole else _subject(new), old.core if whole else _subject(old), len(values))
        dated = new.announces_replacement and kinds & {Kind.DATE, Kind.WEEKDAY}
        return share >= _SHARED_OF_A_DATE if dated else share > _SHARED
    core = new.core & old.core
    if old.core <= new.core and new.announces_replacement and _denies(new) and not _denies(old) and len(core) >= 2:
        # A denial of the old claim: 'It turned out I'm not allergic to peanuts.'
        return True
    if not core or gone or not (fresh or new.core - old.core):
        return False
    if old.core <= new.core:
        # 'New meeting point for the hike: the kiosk, the old gate is closed' contains all of the old subject and adds
        # something.
        return True
    if fresh:
        return False
    share = len(core) / min(len(new.core), len(old.core))
    return new.wants_instead and same_speaker and share >= _SHARED_BY_ONESELF


def _is_somebody_else(new: FactClaim, old: FactClaim) -> bool:
    """Return whether both claims are the same except for one name, and a change is announced.

    Examples: 'We watch it at Nora's place instead', 'Change of plan, Omar brings the speakers'.
    """
    mine, theirs = of_kind(new.values, Kind.NAME), of_kind(old.values, Kind.NAME)
    if new.values - mine != old.values - theirs or mine == theirs:
        return False
    # A name at the beginning of a sentence is not recognised as a name, so it is among the topics.
    openers = len(new.core ^ old.core)
    alike = len(new.core & old.core)
    announced = new.announces_replacement or (new.states and old.states and not openers)
    return announced and alike >= 2 and openers <= 1 and bool(mine) and bool(theirs or openers)


def _subject(claim: FactClaim) -> frozenset[str]:
    """Return the topics of a claim without general words ('starts', 'due'). If nothing else is left, return
    all topics.
    """
    return claim.core - _SAID_OF_ANYTHING or claim.core


def _share(new: frozenset[str], old: frozenset[str], values: int) -> float:
    """Return how much of the shorter of two subjects both share. `values`: how many values both share."""
    return (len(new & old) + values) / max(1, min(len(new), len(old)) + values)


def _denies(claim: FactClaim) -> bool:
    return _NEGATION.search(claim.fact.text) is not None


def _restates_with_another_value(new: FactClaim, old: FactClaim) -> bool:
    """Return whether `new` repeats `old` with another value and without announcing a change.

    'The code is 7023' restates 'the code is 4411', but 'we scored 17' does not restate 'we scored 41'.
    """
    shared, values = new.core & old.core, new.values & old.values
    fresh, gone = new.values - old.values, old.values - new.values
    # 'Pixel is eleven' after 'Domino is eleven' is about another cat, so a different name is not a correction.
    if _has_name(fresh | gone) or not _replaced_kinds(fresh, gone) or not (new.states and old.states) or not shared:
        return False
    months = {value.what.split()[-1] for value in of_kind(fresh, Kind.DATE)}
    same_month = any(value.what.split()[-1] in months for value in of_kind(gone, Kind.DATE))
    told_alike = len(shared) + len(values) + same_month
    return told_alike >= 2 and len(shared) / len(new.core | old.core) >= _SHARED_UNANNOUNCED


def _replaced_kinds(fresh: frozenset[Value], gone: frozenset[Value]) -> set[Kind]:
    """Return the kinds of values in which a new value replaces an old one."""
    return {theirs.kind for _, theirs in _replaceable(fresh, gone)}


def _has_name(found: Iterable[Value]) -> bool:
    return any(value.kind is Kind.NAME for value in found)
