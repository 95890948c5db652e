"""Tells the day of a talk, and the dates that follow from it: tomorrow, and weekdays. Pure.

A prompt is told what is certain. A weekday means the one of the seven days to come where it stands alone, at the
beginning of a sentence or after a word without a meaning ('on Monday'). After any other word ('next Monday') it may be
another week, and so may the weekday of the day itself.

What a model may write is wider, because it reads the words around: 'the blood test was on Monday' is the Monday before.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from compaction.language.languages import LANGUAGES
from compaction.language.text import sentences, words
from compaction.summary.dates import (
    DAYS_OF_A_WEEK,
    Period,
    days_named,
    months_of,
    periods_meant,
    weekdays_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from compaction.language.language import Language
    from compaction.model import Turn

# Prompts are in the first language.
_OF_PROMPTS = LANGUAGES[0]
_WEEKDAYS = {name: (number, each) for each in LANGUAGES for number, name in enumerate(weekdays_of(each))}


class Recorded(NamedTuple):
    """What a record says, and when that was said: Unix seconds."""

    text: str
    at: float


def format_day(turns: Sequence[Turn], zone: tzinfo = UTC) -> str:
    """Return the day of the last turn, the next day, and the date of each weekday that is certain; empty without turns.

    Not by `strftime`, whose names of days follow the machine's locale.
    """
    if not turns:
        return ""
    today = _day_of(turns[-1], zone)
    tomorrow = today + timedelta(days=1)
    told = [f"{_weekday(today)}, {_date(today)} {today.year}; tomorrow is {_weekday(tomorrow)}, {_date(tomorrow)}"]
    told += [f"the coming {_weekday(day)} is {_date(day)}" for day in _days_said(turns, zone) if day != tomorrow]
    return "; ".join(told)


def sayings_of_day(turns: Sequence[Turn], zone: tzinfo = UTC) -> list[str]:
    """Return what a text may say of these days, with the month in each language: the sources of its dates.

    Of a weekday that is said, in whatever words, these are the ones of the week before and of the week to come.
    """
    if not turns:
        return []
    today = _day_of(turns[-1], zone)
    around = [today + timedelta(days=days) for days in (-1, 0, 1)]
    meant = (_days_meant((part.text for part in turn.parts), _day_of(turn, zone)) for turn in turns)
    days = dict.fromkeys([*around, *(day for days in meant for day in days)])
    return [
        format_day(turns, zone),
        *(f"{_weekday(day, each)} {_date(day, each)}" for each in LANGUAGES for day in days),
    ]


def day_at(at: float, zone: tzinfo) -> date:
    """Return the day of a moment. `at`: Unix seconds."""
    return datetime.fromtimestamp(at, zone).date()


def last_day(turns: Sequence[Turn], zone: tzinfo = UTC) -> date | None:
    """Return the day of the last turn; None without turns."""
    return _day_of(turns[-1], zone) if turns else None


def periods_of(turns: Sequence[Turn], zone: tzinfo = UTC) -> frozenset[Period]:
    """Return the other days, months and years that the people of these turns may mean."""
    said = ((part.text, _day_of(turn, zone)) for turn in turns for part in turn.parts)
    return frozenset(period for text, day in said for period in periods_meant(text, day))


def weekdays_of_records(records: Iterable[Recorded], zone: tzinfo = UTC) -> list[str]:
    """Return the weekdays, in each language, of the days on which this was said, and of its 'tomorrow' and the like."""
    days = {day for each in records for day in {day_at(each.at, zone), *days_named(each.text, day_at(each.at, zone))}}
    numbers = {day.weekday(): day for day in days}
    return [_weekday(numbers[number], each) for each in LANGUAGES for number in sorted(numbers)]


def periods_of_records(records: Iterable[Recorded], zone: tzinfo = UTC) -> frozenset[Period]:
    """Return the days on which this was said, and the other days, months and years that it may mean.

    They are told as a whole: a talk on 31 December is no source of 31 euros.
    """
    found: set[Period] = set()
    for text, at in records:
        today = day_at(at, zone)
        days = (today, *_days_meant([text], today))
        found |= {*(Period(day.year, day.month, day.day) for day in days), *periods_meant(text, today)}
    return frozenset(found)


def without_day_said(values: frozenset[str], at: float) -> frozenset[str]:
    """Return a fact's values without the day on which it was said, if that is among them. `at`: Unix seconds.

    '(said on Friday, 5 December)' and the year go without saying. A five alone does not: it may count something.
    """
    day = datetime.fromtimestamp(at, UTC).date()
    for language in LANGUAGES:
        names = (_weekday(day, language), _month(day, language))
        weekday, month = (language.named_values[name.lower()] for name in names)
        date_said = {str(day.day), month}
        if date_said <= values:
            values -= {*date_said, weekday}
    return values - {str(day.year)}


def _days_said(turns: Sequence[Turn], zone: tzinfo) -> list[date]:
    """Return the coming days that the turns name by their weekday, in order, as far as each is certain."""
    said: dict[int, set[date]] = {}
    for turn in turns:
        today = _day_of(turn, zone)
        for part in turn.parts:
            for weekday, alone in _weekdays_in(part.text):
                if alone:
                    ahead = (weekday - today.weekday()) % DAYS_OF_A_WEEK
                    said.setdefault(weekday, set()).add(today + timedelta(days=ahead))
    # A day that is over when the batch ends is not to come.
    over = max((_day_of(turn, zone) for turn in turns), default=date.min)
    return sorted(day for days in said.values() for day in days if len(days) == 1 and day > over)


def _days_meant(texts: Iterable[str], today: date) -> list[date]:
    """Return the days from a week before to a week after that day whose weekdays the texts name."""
    named = {weekday for text in texts for weekday, _ in _weekdays_in(text)}
    near = (today + timedelta(days=days) for days in range(-DAYS_OF_A_WEEK, DAYS_OF_A_WEEK + 1))
    return [day for day in near if day.weekday() in named]


def _weekdays_in(text: str) -> list[tuple[int, bool]]:
    """Return the weekdays, 0 for Monday, in a text, and whether each has no word before that tells of another week."""
    found: list[tuple[int, bool]] = []
    for sentence in sentences(text):
        before = ""
        for word in words(sentence):
            if word in _WEEKDAYS:
                weekday, language = _WEEKDAYS[word]
                found.append((weekday, not before or before in language.stopwords))
            before = word
    return found


def _day_of(turn: Turn, zone: tzinfo) -> date:
    return day_at(turn.started_at, zone)


def _weekday(day: date, language: Language = _OF_PROMPTS) -> str:
    return weekdays_of(language)[day.weekday()].capitalize()


def _date(day: date, language: Language = _OF_PROMPTS) -> str:
    return f"{day.day} {_month(day, language)}"


def _month(day: date, language: Language = _OF_PROMPTS) -> str:
    return months_of(language)[day.month - 1].capitalize()
