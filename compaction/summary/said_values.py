"""Which numbers, times and codes were said, also in another form than they are written in. Pure.

A value is one of `Meaning.values`: '7', '19:30', '3/4', 'drf99'. People say many of them in pieces or in words that
tell less: 'half past seven', 'seven and a half', 'three hundred and fifty', 'D-R-F-nine-nine'.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.meaning import meaning
from compaction.language.terms import UNSPACED

if TYPE_CHECKING:
    from compaction.language.meaning import Meaning

_PIECE = re.compile(r"[^\W_]+")
# Two letters or figures with something between them, as in a code that is spelled out.
_SPELLED = re.compile(r"(?<![^\W_])[^\W_][\W_][^\W_](?![^\W_])")
_LONGEST_SPELLED = 24
_FIGURE = re.compile(r"(?<![\d.,:/])\d+(?![\d.,:/])")
_CLOCK = re.compile(r"(\d{1,2})[:.](\d\d)")
# Thousands as German writes them: 2.500.
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
_TENS = frozenset(map(str, range(20, 100, 10)))
_ONE = frozenset(("one", "ein", "eins", "eine"))
_FRACTION_MARK = re.compile(r"[.,/]")
# Times of an hour that people say in words: 'half past seven', 'quarter to ten', 'seven'.
_SPOKEN_MINUTES = frozenset({0, 15, 30, 45})
# A number up to this may be an hour of the day.
_LAST_HOUR = 24
# 'Two of them' counts, and is no value that somebody gave.
_COUNTING = frozenset({"0", "1", "2", "3"})
# A longer number is an identifier, and counts as a whole.
_LONGEST_NUMBER = 10


def values_of(sentence: str, told: Meaning) -> frozenset[str]:
    """Return the values of a sentence; in a script without spaces its figures stand inside of words."""
    return told.values | frozenset(_FIGURE.findall(sentence)) if UNSPACED.search(sentence) else told.values


def forms_of_values(sentence: str, told: Meaning) -> frozenset[str]:
    """Return the values of a sentence in each form in which a text may repeat them."""
    return told.values.union(_FIGURE.findall(sentence), map(_without_groups, told.values))


def spelled_out(sentence: str, told: Meaning) -> frozenset[str]:
    """Return what is said in pieces: '14 7 23' is 14723, 'D-R-F-nine-nine' is drf99, and 'nineteen eighty-four' is
    both 19804 and 1984. None where nothing is spelled and there is no value.
    """
    if not told.values and not _SPELLED.search(sentence):
        return frozenset()
    found: set[str] = set()
    run, counted, last = "", "", ""
    for word in _PIECE.findall(sentence):
        piece = word.casefold()
        if len(word) > 1 and not word.isdecimal():
            piece = next((each for each in meaning(word).values if each.isdecimal()), "1" if piece in _ONE else "")
        is_unit = last in _TENS and len(piece) == 1 and piece.isdecimal()
        run = (run + piece)[-_LONGEST_SPELLED:] if piece else ""
        counted = ((counted[:-1] if is_unit else counted) + piece)[-_LONGEST_SPELLED:] if piece else ""
        found.update(each[at:] for each in (run, counted) for at in range(len(each) - 1))
        last = piece
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class SaidValues:
    """The `values` and `words` that were said, and the numbers among them, which are gathered once.

    `clock_hours`: the hours of the clock times (0-11). `hours`: these, and those that the numbers may mean. `one`:
    somebody said 'one'.
    """

    values: frozenset[str]
    words: frozenset[str]
    numbers: frozenset[int]
    clock_hours: frozenset[int]
    hours: frozenset[int]
    one: bool

    @classmethod
    def among(cls, values: frozenset[str], words: frozenset[str]) -> SaidValues:
        """Return what was said. `values`: in each form (`forms_of_values`, `spelled_out`)."""
        clocks = (clock for each in values if (clock := _CLOCK.fullmatch(each)) is not None)
        clock_hours = frozenset(int(clock[1]) % 12 for clock in clocks)
        numbers = frozenset(int(each) for each in values if _is_number(each))
        return cls(
            values=values,
            words=words,
            numbers=numbers,
            clock_hours=clock_hours,
            hours=clock_hours | {each % 12 for each in numbers if each <= _LAST_HOUR},
            one=bool(words & _ONE),
        )

    def have(self, value: str, sentence: str) -> bool:
        """Return whether `value` of `sentence` was said, in whatever form."""
        if self.values & {value, _without_groups(value)} or value in self.words:
            return True
        if value in _COUNTING and value not in sentence:
            return True
        # 'One' is mostly no number, so it is no value of what was said.
        if value == "1" and self.one:
            return True
        if (clock := _CLOCK.fullmatch(value)) is not None:
            return self._have_time(int(clock[1]), int(clock[2]))
        pieces = [each for each in _FRACTION_MARK.split(value) if each]
        if len(pieces) == 2 and all(map(str.isdecimal, pieces)):
            whole, part = pieces
            # 'Seven and a half' is 7.5, and 'four out of ten' is 4/10.
            return whole in self.values and (part in self.values or (part == "5" and "/" not in value))
        if not _is_number(value):
            return False
        return self._have_hour(int(value), is_full=f"{value}:00" in sentence) or self._have_number(int(value))

    def _have_time(self, hour: int, minute: int) -> bool:
        # 'Five past half' and 'five to half' are said in German.
        spoken = {minute, 60 - minute, abs(30 - minute)}
        is_minute_said = minute in _SPOKEN_MINUTES or not self.numbers.isdisjoint(spoken)
        return is_minute_said and not self.hours.isdisjoint({hour % 12, (hour % 12 + 1) % 12})

    def _have_hour(self, number: int, *, is_full: bool) -> bool:
        """Return whether a number may be an hour that was said. A full hour has lost its minutes (`meaning`), and is a
        time all the same.
        """
        return number <= _LAST_HOUR and number % 12 in (self.hours if is_full else self.clock_hours)

    def _have_number(self, number: int) -> bool:
        """Return whether a number was said in parts, or as a part of another one."""
        # 'Thirty-one' is 30 and a word that is mostly no number.
        if number % 10 == 1 and number - 1 in self.numbers and self.one:
            return True
        # 'Six hundred, maybe seven' is also 'six or seven hundred'.
        if not self.numbers.isdisjoint((100 * number, 1_000 * number)):
            return True
        # 'Three hundred and fifty' is 300 and 50.
        return any(each % 100 == 0 and 0 < each < number and number - each in self.numbers for each in self.numbers)


def _is_number(value: str) -> bool:
    return value.isdecimal() and len(value) < _LONGEST_NUMBER


def _without_groups(value: str) -> str:
    return value.replace(".", "") if _GROUPED.fullmatch(value) else value
