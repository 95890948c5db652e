"""Finds the numbers, times and codes that were said, also if a text writes them in another form. Pure.

A value is one of `Meaning.values`: '7', '19:30', '3/4', 'drf99'. People say many of them in pieces or in words that
tell less: 'half past seven', 'seven and a half', 'three hundred and fifty', 'D-R-F-nine-nine'.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.languages import LANGUAGES
from compaction.language.meaning import meaning, numbers_of
from compaction.language.terms import UNSPACED
from compaction.language.text import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compaction.language.meaning import Meaning

_PIECE = re.compile(r"[^\W_]+")
# Two letters or figures with something between them, as in a code that is spelled out.
_SPELLED = re.compile(r"(?<![^\W_])[^\W_][\W_][^\W_](?![^\W_])")
_LONGEST_SPELLED = 24
# With seconds it may be a duration, so its parts are no hours and minutes.
_WITH_SECONDS = re.compile(r"\d+:\d\d:\d\d")
_HUNDRED = "100"
_FIGURE = re.compile(r"(?<![\d.,:/])\d+(?![\d.,:/])")
_CLOCK = re.compile(r"(\d{1,2})[:.](\d\d)")
# Thousands as German writes them: 2.500.
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
_TENS = frozenset(map(str, range(20, 100, 10)))
_ONE = frozenset(("one", "ein", "eins", "eine"))
# The number words of every language.
NUMBERS = {word: int(number) for each in LANGUAGES for word, number in each.numbers.items()}
# The longest words first, because 'fünfundzwanzig' begins with 'fünf'.
_NUMBER_WORD = re.compile("|".join(sorted(NUMBERS, key=len, reverse=True)))
_FRACTION_MARK = re.compile(r"[.,/]")
# 'Two and a half', 'an hour and a half', 'zweieinhalb'; 'anderthalb' is one and a half.
_HALF = re.compile(r"(?i)\b(\w+\W+\w+|\w+)\W+(?:and|und)\W+(?:an?|eine?)\W+hal(?:f|be?)\b|\b(\w+?)(?:ein|t)halb\b")
# '1:30:00' is one and a half hours.
_LASTS_A_HALF = re.compile(r"(?<![\w:.,])0*(\d|1[0-2]):30:00(?![:\d])")
# Times of an hour that people say in words: 'half past seven', 'quarter to ten', 'seven'.
_SPOKEN_MINUTES = frozenset({0, 15, 30, 45})
# A number up to this may be an hour of the day.
_LAST_HOUR, _NOON = 24, 12
# Noon is the value 12:00 and midnight 0:00, as every hour that is said as one: a full hour in figures has lost its
# minutes (`meaning`).
_FULL_HOUR = ":00"
_NAMED_HOURS = {
    word: int(value.removesuffix(_FULL_HOUR))
    for each in LANGUAGES
    for word, value in each.named_values.items()
    if value.endswith(_FULL_HOUR)
}
# '1:00:00' is no hour of the day. The word after a figure may name the hour: '12 noon'.
_HOUR = re.compile(r"(?i)(?<![\w:.,])0*(\d{1,2})(?::00(?![:\d])|\s*(?:([ap])\.?m\b|o['’]clock\b|uhr\b)|(?=\s+(\w+)))")
_AT_HOUR = re.compile(r"(?i)\b(?:at|around|before|by|till|until|um|bis|gegen)\s+(\w+)(?!\w|[:.]\d)")
# 'Two of them' counts, and is no value that somebody gave; nor is 'all five' where five are there.
_COUNTS_TO = 3
# A longer number is an identifier, and counts as a whole.
_LONGEST_NUMBER = 10


def values_of(sentence: str, told: Meaning) -> frozenset[str]:
    """Return the values of a sentence; in a script without spaces its figures stand inside of words."""
    return told.values | frozenset(_FIGURE.findall(sentence)) if UNSPACED.search(sentence) else told.values


def forms_of_values(sentence: str, told: Meaning) -> frozenset[str]:
    """Return the values of a sentence in each form in which a text may repeat them."""
    written = (_FIGURE.findall(sentence), map(_without_groups, told.values))
    hours = (f"{hour}{_FULL_HOUR}" for hour in _hours(sentence).values())
    return told.values.union(*written, _halves(sentence), _compounds(sentence), hours)


def _hours(sentence: str) -> dict[str, int]:
    """Return the numbers that are told as hours, and which of the day: of '19:00', '7 pm', 'at seven' and '12 noon'."""
    found = _open_hours(sentence) | _clear_hours(sentence)
    return {told: hour % _LAST_HOUR for told, hour in found.items() if hour <= _LAST_HOUR}


def _open_hours(sentence: str) -> dict[str, int]:
    """Return the hours of 'at seven', which may be of the morning or the evening."""
    spoken = (value for word in _AT_HOUR.findall(sentence) for value in meaning(word).values)
    return {value: int(value) for value in spoken if _is_number(value)}


def _clear_hours(sentence: str) -> dict[str, int]:
    """Return the hours of '19:00', '7 pm' and '12 noon'."""
    found: dict[str, int] = {}
    for told, half, word in _HOUR.findall(sentence):
        named = _NAMED_HOURS.get(word.casefold())
        if told == "12" and half in {"a", "A"}:
            found[told] = 0
        elif not word:
            found[told] = int(told)
        elif named is not None and int(told) % 12 == named % 12:
            found[told] = named
    return found


def _halves(sentence: str) -> Iterator[str]:
    """Yield the numbers that end in a half and are told in words, as figures."""
    for half in _HALF.finditer(sentence):
        counted = half[1] or half[2]
        numbers = [each for each in meaning(counted).values if each.isdecimal()]
        if not numbers and not {*_ONE, "a", "an", "ander"}.isdisjoint(words(counted)):
            numbers = ["1"]
        yield from (f"{number}.5" for number in numbers)
    yield from (f"{hours}.5" for hours in _LASTS_A_HALF.findall(sentence))


def _compounds(sentence: str) -> Iterator[str]:
    """Yield the numbers that are written as one word: 'zweihundertfünfzig'."""
    for word in words(sentence):
        parts = _NUMBER_WORD.findall(word)
        if len(parts) > 1 and "".join(parts) == word:
            yield from numbers_of([NUMBERS[each] for each in parts])


def spelled_out(sentence: str, told: Meaning) -> frozenset[str]:
    """Return what is said in pieces: '14 7 23' is 14723, 'D-R-F-nine-nine' is drf99, and 'nineteen eighty-four' is
    both 19804 and 1984. None where nothing is spelled and there is no value.
    """
    if not told.values and not _SPELLED.search(sentence):
        return frozenset()
    found: set[str] = set()
    run, counted, last = list[str](), list[str](), ""
    for word in _PIECE.findall(_WITH_SECONDS.sub(" ", sentence)):
        piece = word.casefold()
        if len(word) > 1 and not word.isdecimal():
            piece = next((each for each in meaning(word).values if each.isdecimal()), "1" if piece in _ONE else "")
            # 'Hundred' multiplies, and is no part of a code.
            piece = "" if piece == _HUNDRED else piece
        is_unit = last in _TENS and len(piece) == 1 and piece.isdecimal()
        run = [*run, piece][-_LONGEST_SPELLED:] if piece else []
        if is_unit:
            counted[-1] = counted[-1][:-1] + piece
        else:
            counted = [*counted, piece][-_LONGEST_SPELLED:] if piece else []
        # From a piece on: 26 is no part of 2026.
        told_at_once = ("".join(each[at:]) for each in (run, counted) for at in range(len(each)))
        found.update(each for each in told_at_once if 1 < len(each) <= _LONGEST_SPELLED)
        last = piece
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class SaidValues:
    """The `values` and `words` that were said, and the numbers among them, which are gathered once.

    `clock_hours`: the hours of the clock times (0-11). `hours`: these, and those that the numbers may mean.
    `full_hours`: those that were said as hours (0-23). `one`: somebody said 'one'. `counts_to`: up to this, a number in
    words needs no source.
    """

    values: frozenset[str]
    words: frozenset[str]
    numbers: frozenset[int]
    clock_hours: frozenset[int]
    hours: frozenset[int]
    full_hours: frozenset[int]
    one: bool
    counts_to: int

    @classmethod
    def among(cls, values: frozenset[str], words: frozenset[str], *, people: int) -> SaidValues:
        """Return what was said. `values`: in each form (`forms_of_values`, `spelled_out`). `people`: how many there
        are.
        """
        clocks = [clock for each in values if (clock := _CLOCK.fullmatch(each)) is not None]
        clock_hours = frozenset(int(clock[1]) % 12 for clock in clocks if not clock[0].endswith(_FULL_HOUR))
        numbers = frozenset(int(each) for each in values if _is_number(each))
        return cls(
            values=values,
            words=words,
            numbers=numbers,
            clock_hours=clock_hours,
            # The zeros of '7:00' are no hour.
            hours=clock_hours | {each % 12 for each in numbers if 0 < each <= _LAST_HOUR},
            full_hours=frozenset(int(clock[1]) for clock in clocks if clock[0].endswith(_FULL_HOUR)),
            one=bool(words & _ONE),
            counts_to=max(_COUNTS_TO, people),
        )

    def have(self, value: str, sentence: str) -> bool:
        """Return whether `value` of `sentence` was said, in whatever form."""
        if self.values & {value, _without_groups(value)}:
            return True
        # What stands in another number is no hour: the 1 of '1:00:00', the seven of 'seven hundred'.
        is_hour = value in _hours(sentence)
        if value in self.words and not is_hour:
            return True
        if _is_number(value) and int(value) <= self.counts_to and not re.search(rf"(?<!\d)0*{value}(?!\d)", sentence):
            return True
        # 'One' is mostly no number, so it is no value of what was said.
        if value == "1" and self.one:
            return True
        if value.endswith(_FULL_HOUR):
            return False
        if (clock := _CLOCK.fullmatch(value)) is not None:
            return self._have_time(int(clock[1]), int(clock[2]))
        pieces = [each for each in _FRACTION_MARK.split(value) if each]
        if len(pieces) == 2 and all(map(str.isdecimal, pieces)):
            # 'Seven and a half' is 7.5, also where that is written 7,5, and 'four out of ten' is 4/10.
            return value.replace(",", ".") in self.values or self.values >= {*pieces}
        if not _is_number(value):
            return False
        return self._have_hour(value, sentence) or (not is_hour and self._have_number(int(value)))

    def _have_time(self, hour: int, minute: int) -> bool:
        # 'Five past half' and 'five to half' are said in German.
        spoken = {minute, 60 - minute, abs(30 - minute)}
        is_minute_said = minute in _SPOKEN_MINUTES or not self.numbers.isdisjoint(spoken)
        return is_minute_said and not self.hours.isdisjoint({hour % 12, (hour % 12 + 1) % 12})

    def _have_hour(self, value: str, sentence: str) -> bool:
        """Return whether a number may be an hour that was said. A full hour has lost its minutes (`meaning`), and is a
        time all the same.
        """
        hour = int(value)
        if self._have_full_hour(_hours(sentence).get(value)):
            return True
        # 'At 12' is midnight as well as noon, unless more is told.
        if hour == _NOON and value in _open_hours(sentence).keys() - _clear_hours(sentence).keys():
            return 0 in self.full_hours
        return hour <= _LAST_HOUR and hour % 12 in (self.hours if f"{value}:00" in sentence else self.clock_hours)

    def _have_full_hour(self, hour: int | None) -> bool:
        """Return whether an hour was said as one, of the morning or the evening; noon is not midnight."""
        if hour is None:
            return False
        return hour in self.full_hours or (hour % 12 != 0 and hour % 12 in {each % 12 for each in self.full_hours})

    def _have_number(self, number: int) -> bool:
        """Return whether a number was said in parts, or as a part of another one."""
        # 'Six hundred, maybe seven' is also 'six or seven hundred'.
        if not self.numbers.isdisjoint((100 * number, 1_000 * number)):
            return True
        # 'Three hundred and fifty' is 300 and 50.
        return any(each % 100 == 0 and 0 < each < number and number - each in self.numbers for each in self.numbers)


def _is_number(value: str) -> bool:
    return value.isdecimal() and len(value) < _LONGEST_NUMBER


def _without_groups(value: str) -> str:
    return value.replace(".", "") if _GROUPED.fullmatch(value) else value
