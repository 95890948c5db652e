"""Reads the weekdays that a text has beside dates, and tells whether they are those of the calendar. Pure.

'Thursday, 7 May' says no more than '7 May' if that is a Thursday. 'Friday, 7 May' is wrong then, whoever spoke of a
Friday.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from compaction.summary.dates import LEAST_LETTERS, MONTHS, WEEKDAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# A date without a year is less than nine months ago or eleven months ahead: people plan further than they remember
# without a year. On 26 November '3 February' is the next, and '7 May' may be the last or the next.
_LAST, _COMING = timedelta(days=-275), timedelta(days=335)


def _abbreviated(names: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of these names by how they may be written: 'September', 'Sept' or 'Sep'."""
    lengths = ((name, length) for name in names for length in range(LEAST_LETTERS, len(name) + 1))
    return {name.capitalize()[:length]: names[name] for name, length in lengths}


def _one_of(names: Iterable[str]) -> str:
    return rf"(?:{'|'.join(sorted(names, key=len, reverse=True))})(?!\w)"


_WEEKDAYS, _MONTHS = _abbreviated(WEEKDAYS), _abbreviated(MONTHS)
_WEEKDAY, _MONTH = _one_of(_WEEKDAYS), _one_of(_MONTHS)
_ORDINAL = r"\d{1,2}(?:st|nd|rd|th|\.)"
_DAY = rf"(?:{_ORDINAL}|\d{{1,2}})(?!\w)"
# '7', '3-5', '3rd and 4th'.
_DAYS = rf"{_DAY}(?:(?:\s*[-–]\s*|\s+\w+\s+){_DAY})?"
# '7 May', 'the 7th of May' or 'May 7', with a year or without. 'At 7 from May on' is no date.
_DATE = (
    rf"(?P<date>{_DAYS}(?:(?<=[a-z.])\s+\w+)?\s+(?P<month>{_MONTH})|(?P<first>{_MONTH})\s+{_DAYS})"
    r"(?:,?\s+(?P<year>(?:19|20)\d\d)(?!\w))?"
)
_BEFORE = re.compile(
    # 'Friday to Sunday, 3-5 July', 'Thursday the 7th of May', 'Donnerstag, den 7. Mai'.
    rf"(?:\b(?P<earlier>{_WEEKDAY})\W+(?:\w+\W+)?)?\b(?P<weekday>{_WEEKDAY})\.?(?P<comma>,?)\s+"
    rf"(?:(?P<article>\w+)\s+(?={_ORDINAL}))?{_DATE}"
)
# '7 May (Thursday)'.
_AFTER = re.compile(rf"\b{_DATE}\s*\((?:\w+\s+)?(?P<weekday>{_WEEKDAY})\)")


@dataclass(frozen=True, slots=True)
class DatedWeekday:
    """A weekday beside a date. `span`: where it stands. `number`: 0 for Monday. `days`: of `month`, one of which should
    have it. `year`: 0 if none is told. `certain`: it can't be the weekday of another date. `is_short`: as 'Don', which
    may be somebody.
    """

    word: str
    span: tuple[int, int]
    number: int
    days: tuple[int, ...]
    month: int
    year: int
    certain: bool
    is_short: bool

    def agrees(self, today: date) -> bool:
        """Return whether a day has this weekday, in the year that is told, or else in one in which it is near."""
        return any(day.weekday() == self.number for day in self._dates(today) if self.year or _is_near(day, today))

    def is_near(self, today: date) -> bool:
        """Return whether one of the dates needs no year."""
        return any(_is_near(day, today) for day in self._dates(today))

    @property
    def said_as(self) -> frozenset[tuple[int, int, int]]:
        """Return the weekday with each of the days and the month."""
        return frozenset((self.number, day, self.month) for day in self.days)

    def _dates(self, today: date) -> Iterator[date]:
        for year in (self.year,) if self.year else (today.year - 1, today.year, today.year + 1):
            for day in self.days:
                with suppress(ValueError):
                    yield date(year, self.month, day)


def _is_near(day: date, today: date) -> bool:
    return _LAST <= day - today <= _COMING


def weekdays_beside_dates(sentence: str) -> list[DatedWeekday]:
    """Return the weekdays of 'Thursday, 7 May', 'Thursday the 7th of May', 'Thursday, May 7' and '7 May (Thursday)'."""
    found: list[DatedWeekday] = []
    for match in (*_BEFORE.finditer(sentence), *_AFTER.finditer(sentence)):
        told = match.groupdict("")
        # 'Friday to 7th May' is no Friday, and 'Friday to Sunday, 3 July to 5 July' no Sunday.
        is_alone = not told.get("earlier") and (not told.get("article") or bool(told["comma"]))
        for group in ("earlier", "weekday"):
            if word := told.get(group, ""):
                dated = DatedWeekday(
                    word=word.casefold(),
                    span=match.span(group),
                    number=_WEEKDAYS[word],
                    days=tuple(map(int, re.findall(r"\d+", told["date"]))),
                    month=_MONTHS[told["month"] or told["first"]],
                    year=int(told["year"] or 0),
                    certain=is_alone,
                    is_short=word.casefold() not in WEEKDAYS,
                )
                found.append(dated)
    return found
