"""What a sentence says, as far as words alone tell: topics, names, values, sign, and the cues of what should be kept.

Works for every language of `languages`; for other texts names, numbers and topics still count, and for scripts without
spaces pairs of characters. Linear in the length of a text, of which `MAX_CHARS` are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.languages import language_of
from compaction.language.terms import UNSPACED, pairs
from compaction.language.text import QUESTION_MARKS, plain
from compaction.model import FactKind
from compaction.sentence_cache import MOST_MEANINGS, sentence_cache

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# A turn is rarely longer than 1,200 characters; a longer text says no more about what it is about.
MAX_CHARS = 4_000
NO_NAMES: frozenset[str] = frozenset()

_TOKEN = re.compile(r"\d+(?:[.,:/]\d+)*[^\W_]*|[^\W\d_][^\W_]*(?:['’][^\W_]+)*")
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
_FIGURE = re.compile(r"\d+(?:[.,:/]\d+)*")
_ZEROS = re.compile(r"^0+(?=\d)|(?<!^\d:\d\d)(?<!^0\d:\d\d)(?<!^1[0-2]:\d\d):00$")
# A negation denies the first word with a meaning among so many after it.
_DENIES_WITHIN = 5
# What cues add to the worth of a sentence, 1.0 without any; retune with `roomtone bench memory`.
_ADDS = {"secrets": 1.0, "lasting": 0.8, "deciding": 0.6, "unsettled": 0.2, "ending": 0.4, "doing": 0.1}
_VALUE_ADDS, _NAME_ADDS = 0.4, 0.3
# What is left of the worth of chatter, and of a sentence that says nothing.
_PASSING = 0.35
_EMPTY = 0.1
# An exclamation without any cue is chatter more often than not.
_EXCLAIMED = 0.9
# Where 'it' or 'that' makes a sentence need what was said before.
_OPENING = frozenset({0, 1})
# Statements about one thing share at least this much of what they speak of.
_SAME_THING = 0.5
_VERY_SAME_THING = 0.75


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one sentence says.

    `topics`: stems of content words that are neither names nor values. `names`: in lower case. `values`: numbers as
    digits, times, weekdays, months. `denied`: the stem after each negation; `negated`: any word of negation. `own`:
    in the first person; `together`: not of one alone. `echoes`: like what somebody said of themselves. `announces`:
    something is no longer as it was, or is taken back. `ends`: something is over. `refers`: it needs what was said
    before. `reports`: somebody else's words. `supposes`: 'if …'. `thing`: what its value is of, the topics and
    names before its first value, or before its first name if it has no value. `is_state`: 'I'm …', how somebody is.
    `weight`: how much its cues ask to be kept, 1.0 for ordinary talk.
    """

    topics: frozenset[str]
    names: frozenset[str]
    values: frozenset[str]
    denied: frozenset[str]
    negated: bool
    asks: bool
    own: bool
    announces: bool
    weight: float
    ends: bool = False
    refers: bool = False
    reports: bool = False
    echoes: bool = False
    is_state: bool = False
    together: bool = False
    supposes: bool = False
    kind: FactKind = FactKind.OTHER
    thing: frozenset[str] = NO_NAMES

    @property
    def about(self) -> frozenset[str]:
        """Return topics, names and values together."""
        # Thousands of sentences are remembered, and most have topics alone: those need no set of their own.
        return self.topics | self.names | self.values if self.names or self.values else self.topics


@sentence_cache(most=MOST_MEANINGS)
def meaning(text: str, known: frozenset[str] = NO_NAMES) -> Meaning:
    """Return what a sentence says. `known`: names in lower case, for words that open the sentence."""
    return _Reading(plain(text[:MAX_CHARS])).meaning(known)


def answers(statement: Meaning, question: Meaning, *, at_once: bool) -> bool:
    """Return whether a statement of another person than who asked answers a question: it speaks of all that was asked.

    `at_once`: it is said right after the question. Otherwise it answers none that speaks of one thing alone, because
    more is said of one thing than answers. What is only asked, supposed, reported or still open answers nothing.
    """
    if not question.asks or statement.asks or statement.supposes or statement.reports:
        return False
    if statement.kind is FactKind.OPEN or not question.about or not (at_once or len(question.about) > 1):
        return False
    # Of several values ('eight or nine?') an answer takes one.
    takes_value = not question.values or not question.values.isdisjoint(statement.values)
    return takes_value and question.topics | question.names <= statement.about


def contradicts(one: Meaning, other: Meaning) -> bool:
    """Return whether one denies what the other affirms: the same word, about the same thing, with the same values.

    Certain cases only: beside the word that one of them denies they must have something else in common, unless that one
    says nothing else.
    """
    if one.asks or other.asks:
        return False
    first, second = _denied_alone(one, other), _denied_alone(other, one)
    if not first and not second and (one.negated == other.negated or one.topics != other.topics):
        return False
    denied = first | second
    mine, theirs = (one.topics | one.values) - denied, (other.topics | other.values) - denied
    if denied and not mine & theirs and (mine if first else theirs):
        return False
    return (
        _agree(one.values, other.values) and _agree(one.names, other.names) and _topic_share(one, other) > _SAME_THING
    )


def replaces(new: Meaning, old: Meaning, *, same_speaker: bool) -> bool:
    """Return whether `new`, said later, puts another value or sign in the place of what `old` says.

    What people say of themselves only they replace. Somebody else must announce that it is otherwise. The value of one
    thing takes no other thing's place: a bike lock's code is not the locker's.
    """
    if new.asks or old.asks or new == old:
        return False
    if not same_speaker and (_is_personal(new) or _is_personal(old) or not new.announces):
        return False
    share = _topic_share(new, old)
    if contradicts(new, old):
        return same_speaker or share >= _VERY_SAME_THING
    if not (new.thing <= old.thing or old.thing <= new.thing):
        return False
    least = _SAME_THING if same_speaker else _VERY_SAME_THING
    return (new.announces or new.ends) and share >= least and (new.ends or _other_value(new, old))


def _is_personal(says: Meaning) -> bool:
    return says.own and not says.together


def _other_value(new: Meaning, old: Meaning) -> bool:
    """Return whether a statement gives a value where the old one has another, or says the old one is over."""
    return not (new.values | new.names) <= (old.values | old.names) or old.ends or (new.topics != old.topics)


def _topic_share(one: Meaning, other: Meaning) -> float:
    least = min(len(one.topics), len(other.topics))
    return len(one.topics & other.topics) / least if least else 0.0


def _denied_alone(one: Meaning, other: Meaning) -> frozenset[str]:
    return (one.denied & (other.topics | other.values)) - other.denied


def _agree(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether the values of two statements may be of one thing."""
    return not one or not other or bool(one & other)


def _frozen(found: Iterable[str]) -> frozenset[str]:
    """Return these as a set without room for more, which takes two thirds. Most sentences have no name, no value and no
    negation, so all of these share one: an empty set takes 216 bytes.
    """
    return frozenset({*found}) or NO_NAMES


class _Reading:
    """One sentence and its words, for the time it takes to read it."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = list(_TOKEN.finditer(text))
        self._written = [match.group() for match in found]
        self._words = [each.casefold().replace("’", "'") for each in self._written]
        self._language = language_of(self._words)
        self._stems = [self._language.stem(each) for each in self._words]
        self._cues = self._language.cue_places(self._words, self._stems)

    def meaning(self, known: frozenset[str]) -> Meaning:
        values, numbered = self._values()
        named = self._names(known, numbered)
        passing = len(self._cues["passing"])
        content = {
            place: self._stems[place]
            for place in range(len(self._words))
            if place not in numbered and place not in named and self._is_content(place)
        }
        told = [
            (place, topic)
            for place, stem in content.items()
            if place not in self._cues["changing"]
            for topic in _topics(self._words[place], stem)
        ]
        topics = _frozen(topic for _, topic in told)
        names = _frozen(named.values())
        own = bool(self._cues["own"] or self._cues["group"])
        question = self._asks()
        ends = bool(self._cues["ending"])
        until = min(numbered or named, default=0)
        return Meaning(
            topics=topics,
            names=names,
            values=_frozen(values),
            denied=self._denied(content),
            negated=bool(self._cues["negations"]),
            asks=question,
            own=own,
            announces=bool(self._cues["changing"]) or ends,
            weight=self._weight(bool(topics or names or values), own, question, passing, bool(values), bool(names)),
            ends=ends,
            refers=bool(self._cues["references"] & _OPENING),
            echoes=bool(self._cues["echoing"]),
            is_state=bool(self._cues["being"]),
            together=not self._cues["own"],
            reports=bool(self._cues["reporting"]),
            supposes=bool(self._cues["supposing"]),
            kind=self._kind(own, question),
            thing=_frozen(each for place, each in (*told, *named.items()) if place < until),
        )

    def _is_content(self, place: int) -> bool:
        word = self._words[place]
        return len(word) > 1 and self._language.stopwords.isdisjoint((word, word.removesuffix("'s")))

    def _values(self) -> tuple[set[str], set[int]]:
        """Return the values and the positions of their words. 'One' is a number in 'thirty-one' alone."""
        found, places, group = set[str](), set[int](), list[int]()
        for place, word in enumerate(self._words):
            number = self._language.numbers.get(word)
            if number is not None and (word not in self._language.stopwords or {*group[-1:]} & {*range(20, 100, 10)}):
                places.add(place)
                group.append(int(number))
                continue
            if group and (word != self._language.conjunction or group[-1] < 100):  # 'three hundred and sixty'
                found.update(numbers_of(group))
                group = []
            figure = _FIGURE.match(word)
            if figure is not None:
                found.add(_figure(figure.group()))
                places.add(place)
            elif word.removesuffix("'s") in self._language.named_values and (
                word not in self._language.ambiguous or (place > 0 and self._written[place][0].isupper())
            ):
                found.add(self._language.named_values[word.removesuffix("'s")])
                places.add(place)
        found.update(numbers_of(group))
        return found, places

    def _names(self, known: frozenset[str], numbered: set[int]) -> dict[int, str]:
        """Return the names by the positions of their words."""
        found: dict[int, str] = {}
        upper = [self._written[place][0].isupper() for place in range(len(self._words))]
        later = {word.removesuffix("'s") for place, word in enumerate(self._words) if place > 0 and upper[place]}
        # Recognisers write a sentence Like This Now And Then: its capitals tell nothing.
        content = {place for place in range(len(self._words)) if self._is_content(place)}
        small = set(range(1, len(self._words))) - content - self._cues["own"]
        titled = any(upper[place] for place in small) and all(upper[place] for place in content)
        told = not self._language.capital_nouns and not titled
        for place, word in enumerate(self._words):
            bare = word.removesuffix("'s").removesuffix("'")
            if place in numbered or not self._is_content(place) or not upper[place]:
                continue
            if bare in known or (told and (place > 0 or bare in later)):
                found[place] = bare
        return found

    def _denied(self, content: dict[int, str]) -> frozenset[str]:
        """Return the stem after each negation; before it, if nothing follows ('ich komme nicht')."""
        found: set[str] = set()
        for place in self._cues["negations"]:
            after = [content[at] for at in range(place + 1, place + 1 + _DENIES_WITHIN) if at in content]
            before = [content[at] for at in range(place - _DENIES_WITHIN, place) if at in content]
            found.update(after[:1] or (before[-1:] if self._language.negation_follows else ()))
        return _frozen(found)

    def _asks(self) -> bool:
        if self._text.rstrip("\"”’」』) '").endswith(QUESTION_MARKS):
            return True
        closed = self._text.endswith((".", "!", "…", "。", "！"))
        return bool(self._words) and not closed and 0 in self._cues["asking"]

    def _weight(self, says: bool, own: bool, question: bool, passing: int, valued: bool, named: bool) -> float:
        if not says:
            return _EMPTY
        weight = 1.0 + sum(adds for cues, adds in _ADDS.items() if (own or cues != "lasting") and self._cues[cues])
        weight += _VALUE_ADDS * valued + _NAME_ADDS * named
        if question:
            weight = min(weight, 1.0) if passing else weight * 0.8
        if weight <= 1.0 and self._text.endswith("!"):
            weight = _EXCLAIMED
        return weight * _PASSING if passing and (weight < 2.0 or passing * 2 > len(self._words)) else weight

    def _kind(self, own: bool, question: bool) -> FactKind:
        if question or self._cues["unsettled"]:
            return FactKind.OPEN
        if self._cues["secrets"] or (own and self._cues["lasting"]):
            return FactKind.LASTING
        if self._cues["deciding"]:
            return FactKind.DECISION
        return FactKind.DOING if self._cues["doing"] else FactKind.OTHER


def _topics(word: str, stem: str) -> Iterable[str]:
    """Return a word's stem; of scripts without spaces overlapping pairs of characters."""
    runs = UNSPACED.findall(word)
    return (*filter(None, UNSPACED.split(word)), *(each for run in runs for each in pairs(run))) if runs else (stem,)


def numbers_of(group: Sequence[int]) -> Iterable[str]:
    """Return the numbers of adjacent words: 'three thousand two hundred five' is 3205, 'seven eight' is 7 and 8."""
    found: list[int] = []
    for value in group:
        last = found[-1] if found else 0
        counted = last % (1_000 if value < 1_000 else 1_000 * value)
        if value >= 100 and 0 < counted < value:
            found[-1] += counted * (value - 1)
        elif value >= 100 and last % value:  # 'two hundred and three hundred'
            found[-1:] = [last - last % value, last % value * value]
        elif value < last and last % 10 ** len(str(value)) == 0:
            found[-1] += value
        else:
            found.append(value)
    return map(str, found)


def _figure(written: str) -> str:
    """Return a figure without thousands commas and leading zeros; a full hour without its minutes. 1:00:00 is none."""
    return _ZEROS.sub("", _THOUSANDS.sub("", written))
