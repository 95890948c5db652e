"""The values in a sentence, by kind: times of day, weekdays, dates, figures and names. Pure.

A correction replaces a value by another value of the same kind. Therefore 'quarter to ten' must be one time and not the
figure ten, and 'the 9th of July' must be one date. Number words are English; digits work in all languages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from compaction.language.lexicon import MONTHS, NUMBER_WORDS, SMALL_NUMBER_WORDS, WEEKDAYS
from compaction.language.wording import concepts
from compaction.sentence_cache import sentence_cache

if TYPE_CHECKING:
    from collections.abc import Iterable


class Kind(Enum):
    """The kind of a value. A value can be replaced only by a value of the same kind."""

    TIME = "time"
    WEEKDAY = "weekday"
    DATE = "date"
    FIGURE = "figure"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Value:
    """One value in a uniform notation: a time as `9:45`, a date as `14 june`, `14` or `june`, a name in lower case."""

    kind: Kind
    what: str


_UNITS = tuple(
    word for word, digits in (NUMBER_WORDS | SMALL_NUMBER_WORDS).items() if word != "once" and int(digits) <= 12
)
_HOUR = rf"(?:{'|'.join(word for word in _UNITS if not word.endswith(('th', 'st', 'nd', 'rd')))}|1[0-2]|0?[1-9])"
_ORDINAL = rf"(?:{'|'.join(word for word in NUMBER_WORDS if word.endswith(('th', 'first', 'second', 'third')))})"
# A bare hour or day must be followed by one of these. 'At ten people' and 'the third one' thus give no time or date.
_ENDS = (
    r"(?=\s*(?:[.,;!?)]|$|(?:on|in the|at|now|then|instead|sharp|tonight|tomorrow|today|for|because|not|and|or|but|"
    r"this|with|if|already|again|so|as)\b))"
)
_DAY = rf"(?:(?:twenty|thirty)[- ]{_ORDINAL}|{_ORDINAL}|(?:[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th))"
_MONTH = rf"(?:{'|'.join(sorted(MONTHS - {'may', 'march'}))}|(?-i:May|March))"
_TIMES = (
    # 'Half past seven', 'quarter to ten', 'ten to five', 'five past'.
    re.compile(
        rf"\b(?P<minutes>half|(?:a )?quarter|twenty[- ]five|twenty|ten|five|\d{{1,2}})(?: minutes)? "
        rf"(?P<way>past|to|after|before) (?P<hour>{_HOUR})\b",
        re.IGNORECASE,
    ),
    # '7:30', '19:30', '7:30 pm', 'at 19.30'.
    re.compile(
        r"\b(?P<hour>[01]?\d|2[0-3]):(?P<minutes>[0-5]\d)(?: ?[ap]\.?m)?\b(?![:.,]?\d)",
        re.IGNORECASE,
    ),
    re.compile(r"\b(?:at|by|till|until|from) (?P<hour>[01]?\d|2[0-3])\.(?P<minutes>[0-5]\d)\b", re.IGNORECASE),
    # 'Nine thirty', 'eight fifteen'.
    re.compile(
        rf"\b(?P<hour>{_HOUR})[- ](?P<minutes>fifteen|thirty|forty[- ]five|twenty|forty|o'clock|o’clock)\b"
        r"(?! (?:euros?|pounds?|dollars?|people|times))",
        re.IGNORECASE,
    ),
    # '7 pm', '11 o'clock', 'at nine', 'by eight'.
    re.compile(r"\b(?P<hour>1[0-2]|0?[1-9]) ?(?P<half>[ap])\.?m\b", re.IGNORECASE),
    re.compile(rf"\b(?:at|till|until|from|by|before|after|around|about) (?P<hour>{_HOUR})\b{_ENDS}", re.IGNORECASE),
    re.compile(r"\b(?P<word>noon|midday|midnight)\b", re.IGNORECASE),
)
_DATES = (
    re.compile(rf"\b(?:the )?(?P<day>{_DAY}|\d{{1,2}}) (?:of )?(?P<month>{_MONTH})\b", re.IGNORECASE),
    re.compile(rf"\b(?P<month>{_MONTH}) (?:the )?(?P<day>{_DAY}|\d{{1,2}})\b", re.IGNORECASE),
    re.compile(rf"\bthe (?P<day>{_DAY})\b{_ENDS}", re.IGNORECASE),
    re.compile(rf"\b(?P<month>{_MONTH})\b", re.IGNORECASE),
)
_WEEKDAY = re.compile(rf"\b({'|'.join(sorted(WEEKDAYS))})s?\b", re.IGNORECASE)
_MINUTES = {"half": 30, "quarter": 15, "a quarter": 15, "o'clock": 0, "o’clock": 0}
_HOURS_A_TURN = 12
_MINUTES_AN_HOUR = 60


@sentence_cache(most=4_096)
def values(text: str) -> frozenset[Value]:
    """Return the values of a text. Numbers that are part of a time or a date are not returned as figures as well."""
    found, rest = _times_and_dates(text)
    about = concepts(rest)
    figured = {Value(Kind.FIGURE, each) for each in about.figures}
    named = {Value(Kind.NAME, name) for name in about.names if name not in MONTHS and name not in WEEKDAYS}
    return found | figured | named | {Value(Kind.WEEKDAY, match[1].casefold()) for match in _WEEKDAY.finditer(text)}


def without_times(text: str) -> str:
    """Return a text without the words of its times and dates."""
    return _times_and_dates(text)[1]


@sentence_cache(most=4_096)
def _times_and_dates(text: str) -> tuple[frozenset[Value], str]:
    """Return the times and dates of a text, and the text without them."""
    found: set[Value] = set()
    for kind, patterns, read in ((Kind.TIME, _TIMES, _time), (Kind.DATE, _DATES, _date)):
        for pattern in patterns:
            found.update(Value(kind, read(match)) for match in pattern.finditer(text))
            text = pattern.sub(" ; ", text)
    return frozenset(found), text


def of_kind(found: Iterable[Value], kind: Kind) -> frozenset[Value]:
    return frozenset(value for value in found if value.kind is kind)


def is_hour(value: Value) -> bool:
    """Return whether a figure could be a time of day."""
    return value.kind is Kind.FIGURE and value.what.isdigit() and 0 < int(value.what) <= _HOURS_A_TURN


def same_value(one: Value, other: Value) -> bool:
    """Return whether two values are the same. A shorter date matches a longer one: 'the 9th' and 'the 9th of July'."""
    if one.kind is not Kind.DATE or other.kind is not Kind.DATE:
        return one == other
    first, second = set(one.what.split()), set(other.what.split())
    return first <= second or second <= first


def _time(match: re.Match[str]) -> str:
    """Return a time on a 12-hour clock, because people rarely say which half of the day they mean."""
    parts = match.groupdict()
    if word := parts.get("word"):
        return "12:00" if word.casefold() != "midnight" else "0:00"
    hour = _number(parts["hour"])
    minutes = 0
    if written := parts.get("minutes"):
        said = written.casefold()
        minutes = _MINUTES[said] if said in _MINUTES else _number(said)
    if (parts.get("way") or "").casefold() in {"to", "before"}:
        hour, minutes = hour - 1, _MINUTES_AN_HOUR - minutes
    return f"{(hour - 1) % _HOURS_A_TURN + 1}:{minutes % _MINUTES_AN_HOUR:02}"


def _date(match: re.Match[str]) -> str:
    parts = match.groupdict()
    day, month = parts.get("day"), (parts.get("month") or "").casefold()
    return f"{_number(day)} {month}".strip() if day else month


def _number(written: str) -> int:
    """Return the value of a number as it is written in a time or date: '9', '9th', 'nine', 'twenty-first'."""
    total = 0
    for word in re.split(r"[- ]", written.casefold()):
        digits = re.match(r"\d+", word)
        total += int(digits.group() if digits else (NUMBER_WORDS | SMALL_NUMBER_WORDS)[word])
    return total
