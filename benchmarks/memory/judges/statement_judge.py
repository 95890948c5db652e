"""Judges whether a text states a fact in any words, and of the right person, by names, numbers and content words.

Written for the benchmark alone: it shares nothing with the code under test. It is strict: every number and weekday of
the fact, each person it is about, and most of its content words must stand in one sentence (or a sentence with a
pronoun after one that names the person). Words belong to the nearest person of their clause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from benchmarks.memory.judges.fact_judge import Attribution
from benchmarks.memory.judges.text_matching import read_sentences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

# The share of a fact's weight that a sentence must have; tuned on half of the hand-judged pairs.
_ENOUGH = 0.6
_VALUE_WEIGHT, _NAME_WEIGHT, _LIGHT_WEIGHT = 2.0, 1.5, 0.4
_TOKEN = re.compile(r"\d+(?:[.:]\d+)*(?:st|nd|rd|th)?(?!\w)|[^\W_]+(?:['’][^\W_]+)*|[.,;:!?()-]")
# A code that is read out: 'D-R-F-99'.
_SPELLED = re.compile(r"\b(?:\w-){2,}\w+\b")


def _words_of(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_CLAUSE_ENDS = frozenset(",;:()-.!?")
_UNITS = _words_of(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = {
    word: 10 * number
    for number, word in enumerate(_words_of("twenty thirty forty fifty sixty seventy eighty ninety"), 2)
}
_ORDINALS = {
    "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12, "twentieth": 20, "thirtieth": 30,
    **{f"{word}th": number for number, word in enumerate(_UNITS)},
}  # fmt: skip
_NUMBERS = {**{word: number for number, word in enumerate(_UNITS)}, **_TENS, **_ORDINALS}
_WEEKDAYS = frozenset(_words_of("monday tuesday wednesday thursday friday saturday sunday"))
# 'one' and 'first' are rarely values.
_NO_VALUES = frozenset({"0", "1", "2"})
_EMPTY = frozenset(
    _words_of("""
    a an the of in on at to and or for with by from is are was were be been being am has have had do does did will
    would can could may might must should shall that this these those it its they them their there then than as so if
    when while also too i you we he she him her his my your our us me up out off about into over who which what where
    how only just still already yet now altogether again first because since after before until et al s t re ll ve d m
    not no never nothing none cannot instead without""")
)
_LIGHT_WORDS = _words_of("""
    come go take get make bring say tell think want need give keep use put talk thing call group people somebody
    everybody know see look start find let plan stay hold become""")
_NEGATIONS = frozenset(_words_of("not no never nothing none cannot without neither nor instead"))
_PRONOUN = re.compile(r"\b(?:she|he|they|her|his|their|him|them|hers)\b", re.IGNORECASE)
_FORMS = {
    "paid": "pay", "brought": "bring", "kept": "keep", "took": "take", "taken": "take", "came": "come", "went": "go",
    "gave": "give", "given": "give", "got": "get", "made": "make", "said": "say", "told": "tell", "thought": "think",
    "found": "find", "sold": "sell", "drove": "drive", "drives": "drive", "chose": "choose", "chosen": "choose",
    "ate": "eat", "slept": "sleep", "sent": "send", "wrote": "write", "written": "write", "cut": "cut", "left": "leave",
    "mum": "mother", "mom": "mother", "dad": "father", "€": "euro", "xp": "experience", "kids": "child",
}  # fmt: skip
_PREFIX = 5
# How many content words a negation reaches, and what ends its reach.
_REACH = 2
_ENDS_REACH = frozenset(_words_of("because but so since and while though"))


@dataclass(frozen=True, slots=True)
class StatementVerdict:
    """`said`: the text has the fact's content. `person`: of whom; None if it is not said."""

    said: bool
    person: Attribution | None

    @property
    def stated(self) -> bool:
        """Return whether the fact is said of the right person."""
        return self.said and self.person is Attribution.RIGHT


@dataclass(frozen=True, slots=True)
class _Word:
    """A content word: its stem, weight, and the people whose clause it is in.

    `denied`: it comes right after a negation; None: it is the second word after one, which may be denied or not.
    """

    stem: str
    weight: float
    denied: bool | None
    people: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The content words of a sentence or fact, and the people named in it, in order."""

    words: tuple[_Word, ...]
    people: tuple[str, ...]

    def of(self, people: tuple[str, ...]) -> tuple[_Word, ...]:
        """Return the words that belong to one of these people or to nobody."""
        return tuple(word for word in self.words if not word.people or set(word.people) & set(people))


class StatementJudge:
    """Judges texts about a conversation of these people."""

    def __init__(self, people: Collection[str]) -> None:
        self._people = frozenset(person.casefold() for person in people)

    def verdict(self, text: str, fact: str) -> StatementVerdict:
        """Return whether `text` states `fact`, and of whom."""
        wanted = [self._read(fact)]
        # A reason explains a fact and is not needed for it.
        main = re.split(r"\s(?:because|so that|so)\s|;", fact, maxsplit=1)[0]
        if main != fact:
            wanted.append(self._read(main))
        best: Attribution | None = None
        for found in self._readings(text):
            for fact_read in wanted:
                person = self._match(fact_read, found)
                if person is Attribution.RIGHT:
                    return StatementVerdict(said=True, person=person)
                best = best or person
        return StatementVerdict(said=best is not None, person=best)

    def says_of(self, text: str, person: str, words: str, *, denied: bool) -> bool:
        """Return whether a sentence of `text` says all these words of the person, affirmed or denied."""
        wanted = self._read(words)
        people = (person.casefold(), *wanted.people)
        for found in self._readings(text):
            if not set(people) <= set(found.people):
                continue
            there = found.of(people)
            matches = [[each for each in there if _same(each.stem, word.stem)] for word in wanted.words]
            negated = any(each.denied is not False for found_words in matches for each in found_words)
            if all(matches) and negated is denied:
                return True
        return False

    def share(self, sentence: str, source: str) -> float:
        """Return the share of the weight of a sentence's words that `source` has."""
        there = self._read(source).words
        words = self._read(sentence).words
        total = sum(word.weight for word in words)
        found = sum(word.weight for word in words if any(_same(word.stem, each.stem) for each in there))
        return found / total if total else 0.0

    def values_of(self, text: str) -> list[str]:
        """Return the people and values that a text names, each once."""
        readings = [self._read(sentence) for sentence in read_sentences(text)]
        named = [person for reading in readings for person in reading.people]
        return [*dict.fromkeys(named), *dict.fromkeys(w.stem for r in readings for w in r.words if w.stem[0].isdigit())]

    def _match(self, wanted: _Reading, found: _Reading) -> Attribution | None:
        if not wanted.people:
            return Attribution.RIGHT if _says(wanted.words, found.words) else None
        # In this order: 'Ada owes Bob' is not 'Bob owes Ada'.
        those = tuple(person for person in found.people if person in wanted.people)
        if those == wanted.people and _says(wanted.words, found.of(wanted.people)):
            return Attribution.RIGHT
        if not _says(wanted.words, found.words):
            return None
        return Attribution.WRONG if found.people else Attribution.UNSAID

    def _readings(self, text: str) -> Iterator[_Reading]:
        """Yield each sentence, with the people of the one before if it has only pronouns, and each two together."""
        before: _Reading | None = None
        for sentence in read_sentences(text):
            found = self._read(sentence)
            if before is not None and _PRONOUN.search(sentence) and not found.people and before.people:
                carried = tuple(_Word(word.stem, word.weight, word.denied, before.people) for word in found.words)
                found = _Reading(carried, before.people)
                # What a pronoun's sentence says may need the one before.
                yield _Reading(before.words + found.words, before.people)
            yield found
            before = found

    def _read(self, sentence: str) -> _Reading:
        return _read(sentence, self._people)


def _says(wanted: Iterable[_Word], found: Iterable[_Word]) -> bool:
    """Return whether the words found have every value and most of the weight of the wanted ones, none denied."""
    total = covered = 0.0
    there = tuple(found)
    conflict = agreed_denial = False
    for word in wanted:
        matches = [each for each in there if _same(each.stem, word.stem)]
        same_sign = [each for each in matches if each.denied is None or word.denied in {None, each.denied}]
        conflict |= bool(matches) and not same_sign
        agreed_denial |= any(each.denied is not False and word.denied is not False for each in same_sign)
        if word.denied and not matches:
            continue  # what it is not need not be said
        total += word.weight
        if matches:
            covered += word.weight
        elif word.weight == _VALUE_WEIGHT:
            return False
    # 'eats no gluten' and 'must not eat gluten' deny the same.
    return total > 0 and covered / total >= _ENOUGH and (agreed_denial or not conflict)


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    if not (one.isalpha() and other.isalpha()) or min(len(one), len(other)) < 4:
        return False
    length = min(len(one), len(other), _PREFIX)
    return one[:length] == other[:length] and abs(len(one) - len(other)) <= 4


@lru_cache(maxsize=20_000)
def _read(sentence: str, people: frozenset[str]) -> _Reading:
    spelled = _SPELLED.sub(lambda found: found[0].replace("-", ""), sentence)
    tokens = _values_joined(_TOKEN.findall(spelled))
    owners = _owners([_person(token, people) for token in tokens], tokens)
    words: list[_Word] = []
    reach = 0
    for position, (token, owner) in enumerate(zip(tokens, owners, strict=True)):
        low = token.casefold().replace("’", "'")
        if token in _CLAUSE_ENDS or low in _ENDS_REACH:
            reach = 0
            continue
        if low == "free" and words and tokens[position - 1] == "-":
            words[-1] = replace(words[-1], denied=True)
            continue
        if low in _NEGATIONS or low.endswith("n't"):
            reach = _REACH
        if _person(token, people) or low in _EMPTY or low.endswith("n't"):
            continue
        value = (low[0].isdigit() or any(char.isdigit() for char in low)) and low not in _NO_VALUES
        stem = low if value else _stem(low)
        if stem in _EMPTY or (len(stem) < 2 and not value):
            continue
        if value or low in _WEEKDAYS:
            weight = _VALUE_WEIGHT
        elif stem in _LIGHT_STEMS:
            weight = _LIGHT_WEIGHT
        else:
            weight = _NAME_WEIGHT if position > 0 and token[0].isupper() else 1.0
        words.append(_Word(stem, weight, True if reach == _REACH else None if reach > 0 else False, owner))
        reach -= 1
    named = dict.fromkeys(name for token in tokens if (name := _person(token, people)))
    return _Reading(tuple(words), tuple(named))


def _person(token: str, people: frozenset[str]) -> str:
    low = re.sub(r"['’]s?$", "", token.casefold())
    return low if low in people else ""


def _owners(named: list[str], tokens: list[str]) -> list[tuple[str, ...]]:
    """Return for each token the people it belongs to: the nearest before it in its clause ('Ada and Bob' are one), else
    the first in its clause, else the last before the clause."""
    owners: list[tuple[str, ...]] = []
    carried: tuple[str, ...] = ()
    start = 0
    for end in range(len(tokens) + 1):
        if end < len(tokens) and tokens[end] not in _CLAUSE_ENDS:
            continue
        groups: list[tuple[int, tuple[str, ...]]] = []
        for position in range(start, end):
            if not named[position]:
                continue
            between = [each.casefold() for each in tokens[groups[-1][0] + 1 : position]] if groups else ["-"]
            group: tuple[str, ...] = (named[position],)
            if between in ([], ["and"], ["or"]):
                group = (*groups.pop()[1], *group)
            groups.append((position, group))
        for position in range(start, min(end + 1, len(tokens))):
            before = [group for place, group in groups if place <= position]
            owners.append(before[-1] if before else groups[0][1] if groups else carried)
        carried = groups[-1][1] if groups else carried
        start = end + 1
    return owners


def _stem(word: str) -> str:
    word = re.sub(r"'s?$", "", word)
    word = _FORMS.get(word, word)
    for ending in ("ingly", "ing", "edly", "ied", "ies", "ed", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending in {"ied", "ies"} else "")
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return _FORMS.get(word, word.removesuffix("e") if len(word) > 3 else word)


_LIGHT_STEMS = frozenset(_stem(word) for word in _LIGHT_WORDS)


def _values_joined(tokens: list[str]) -> list[str]:
    """Return the tokens with written numbers as digits: 'twenty-third' is '23', 'three hundred and sixty' '360'."""
    found: list[str] = []
    low = [re.sub(r"['’]s$", "", token.casefold()) for token in tokens]
    position = 0
    while position < len(tokens):
        value, after = _number_at(low, position)
        if value is None:
            token = tokens[position]
            found.append(re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", token))
            position += 1
        else:
            found.append(value)
            position = after
    return found


def _number_at(low: list[str], position: int) -> tuple[str | None, int]:
    """Return the written number that begins here and the position after it, or None."""
    if low[position : position + 2] == ["half", "past"] and low[position + 2 : position + 3]:
        hour, after = _number_at(low, position + 2)
        if hour is None and low[position + 2].isdigit():
            hour, after = low[position + 2], position + 3
        if hour is not None:
            return f"{hour}:30", after
    if low[position : position + 2] == ["a", "hundred"]:
        return "100", position + 2
    if low[position] not in _NUMBERS or low[position] == "one":
        return None, position
    total = _NUMBERS[low[position]]
    at = position + 1
    if low[position] in _TENS:
        at += low[at : at + 1] == ["-"]
        if at < len(low) and low[at] in _NUMBERS and _NUMBERS[low[at]] < 10:
            total, at = total + _NUMBERS[low[at]], at + 1
        elif low[at : at + 1] == ["first"] or low[at : at + 1] == ["second"]:
            total, at = total + (1 if low[at] == "first" else 2), at + 1
        else:
            at = position + 1
    if low[at : at + 1] == ["or"] and low[at + 2 : at + 3] == ["hundred"]:
        return str(total * 100), at  # 'six or seven hundred'
    if low[at : at + 1] == ["hundred"]:
        total, at = total * 100, at + 1
        more = at + (low[at : at + 1] == ["and"])
        if more < len(low) and low[more] in _NUMBERS:
            rest, after = _number_at(low, more)
            if rest is not None and rest.isdigit():
                return str(total + int(rest)), after
    return str(total), at
