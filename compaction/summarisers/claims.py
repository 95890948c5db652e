"""What a fact claims, read off its words once, and whether a later claim takes its place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from compaction.lexicon import AROUND_A_FACT, MONTHS, WEEKDAYS
from compaction.wording import (
    adds_to_something,
    announces_change,
    announces_replacement,
    asks,
    change_words,
    concepts,
    speaks_of_oneself,
    states_how_it_is,
    stem,
    wants_instead,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compaction.model import Fact
    from compaction.wording import Concepts

# How much of the shorter of two claims, apart from the values that differ, the other must share: more than two of
# three words ('the server room code' isn't 'the rehearsal room code') when a change is announced, and nearly all of
# both when none is.
_SHARED = 0.67
_SHARED_UNANNOUNCED = 0.75
# There are fewer dates than figures to be mistaken for each other.
_SHARED_OF_A_DATE = 0.6
# Of the words of one who says outright that something else is wanted instead.
_SHARED_BY_ONESELF = 0.5


class _Kind(Enum):
    """What a value is; only one of the same kind takes its place."""

    FIGURE = "figure"
    WEEKDAY = "weekday"
    MONTH = "month"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact with what can be told of its words.

    `core`: its topics as stems, without the words that announce a change and the
    talk around it; `values`: its figures, names and days.
    """

    fact: Fact
    about: Concepts
    values: frozenset[str]
    core: frozenset[str]
    announces_change: bool
    announces_replacement: bool
    wants_instead: bool
    adds: bool
    of_oneself: bool
    states: bool
    asks: bool


def claim_of(fact: Fact) -> Claim:
    """Return the claim that a fact makes."""
    about = concepts(fact.text)
    replaces = announces_replacement(fact.text)
    return Claim(
        fact=fact,
        about=about,
        values=about.values,
        core=frozenset(stem(topic) for topic in about.topics - change_words(fact.text)) - AROUND_A_FACT,
        announces_change=replaces or announces_change(fact.text),
        announces_replacement=replaces,
        wants_instead=wants_instead(fact.text),
        adds=adds_to_something(fact.text),
        of_oneself=speaks_of_oneself(fact.text),
        states=states_how_it_is(fact.text),
        asks=asks(fact.text),
    )


def corrects(new: Claim, old: Claim) -> bool:
    """Return whether `new`, said later, gives another value for what `old` says.

    Shy, because a fact that is taken for corrected is lost to the summary: they must be about the same thing, and
    the new one must have something in place of what the old one had. What people say of themselves is corrected by
    themselves alone; questions and what is on a screen correct nothing and aren't corrected.
    """
    if new.adds or new.asks or old.asks or new.fact.note_id is not None or old.fact.note_id is not None:
        return False
    same_speaker = new.fact.speaker == old.fact.speaker
    if not same_speaker and (new.of_oneself or old.of_oneself):
        return False
    if new.core.isdisjoint(old.core) and new.values.isdisjoint(old.values):
        return False
    if not new.announces_change:
        return _restates_with_another_value(new, old)
    return _mentions_what_it_replaces(new, old) or _replaces_announced(new, old, same_speaker=same_speaker)


def _mentions_what_it_replaces(new: Claim, old: Claim) -> bool:
    """'The raid moved to Friday, Monday doesn't work': the subject, the old value and a new one."""
    core, values = new.core & old.core, new.values & old.values
    if _replaced_kinds(new.values - old.values, values) and (core or _has_name(values)):
        return True
    # 'Wei brings the cake now, Ada can't make it': a name that opens a sentence isn't known for one.
    mentioned = new.values & (old.values | old.core)
    return new.announces_replacement and bool(core) and _has_name(mentioned) and bool(new.core - old.core)


def _replaces_announced(new: Claim, old: Claim, *, same_speaker: bool) -> bool:
    fresh, gone = new.values - old.values, old.values - new.values
    if _has_name(fresh) and _has_name(gone):
        # Another name is mostly another subject; who takes somebody's place says whose.
        return False
    core, values = new.core & old.core, new.values & old.values
    kinds = _replaced_kinds(fresh, gone)
    if kinds & {_Kind.MONTH, _Kind.WEEKDAY} and new.announces_replacement and same_speaker and _has_name(values):
        # 'The Lisbon trip got moved to May' is about 'I'm flying to Lisbon in March', whatever other words it uses.
        return True
    if kinds:
        share = (len(core) + len(values)) / max(1, min(len(new.core), len(old.core)) + len(values))
        dated = new.announces_replacement and kinds & {_Kind.MONTH, _Kind.WEEKDAY}
        return share >= _SHARED_OF_A_DATE if dated else share > _SHARED
    if not core or gone or not (fresh or new.core - old.core):
        return False
    if old.core <= new.core:
        # 'New meeting point for the hike: the kiosk, the old gate is closed' repeats all of it and says more.
        return True
    if fresh:
        return False
    share = len(core) / min(len(new.core), len(old.core))
    return new.wants_instead and same_speaker and share >= _SHARED_BY_ONESELF


def _restates_with_another_value(new: Claim, old: Claim) -> bool:
    """'The code is 7023' after 'the code is 4411'; not 'we scored 17' after 'we scored 41'."""
    shared, values = new.core & old.core, new.values & old.values
    fresh, gone = new.values - old.values, old.values - new.values
    # 'Pixel is eleven' after 'Domino is eleven' speaks of another cat; a day for a day is another day.
    if _has_name(fresh | gone) or not _replaced_kinds(fresh, gone) or not (new.states and old.states) or not shared:
        return False
    return len(shared) + len(values) >= 2 and len(shared) / len(new.core | old.core) >= _SHARED_UNANNOUNCED


def _replaced_kinds(fresh: frozenset[str], gone: frozenset[str]) -> set[_Kind]:
    """Return the kinds of which there is a new value in place of an old one."""
    return {_kind(value) for value in fresh} & {_kind(value) for value in gone}


def _has_name(values: Iterable[str]) -> bool:
    return any(_kind(value) is _Kind.NAME for value in values)


def _kind(value: str) -> _Kind:
    if value[:1].isdigit():
        return _Kind.FIGURE
    if value in WEEKDAYS:
        return _Kind.WEEKDAY
    return _Kind.MONTH if value in MONTHS else _Kind.NAME
