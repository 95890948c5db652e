"""Tells the day of a talk, and the dates that follow from it: tomorrow, and weekdays. Pure.

A prompt is told what is certain. A weekday means the one of the seven days to come where it stands alone, at the
beginning of a sentence or after a word without a meaning ('on Monday'). After any other word ('next Monday') it may be
another week, and so may the weekday of the day itself.

What a model may write is wider, because it reads the words around: 'the blood test was on Monday' is the Monday before.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from compaction.language.languages import LANGUAGES
from compaction.language.text import sentences, words
from compaction.summary.dates import DAYS_OF_A_WEEK, Period, months_of, periods_meant, weekdays_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from compaction.language.language import Language
    from compaction.model import Turn

# Prompts are in the first language.
_OF_PROMPTS = LANGUAGES[0]
_WEEKDAYS = {name: (number, each) for each in LANGUAGES for number, name in enumerate(weekdays_of(each))}


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
    days = dict.fromkeys([*around, *(day for turn in turns for day in _days_meant(turn, zone))])
    return [
        format_day(turns, zone),
        *(f"{_weekday(day, each)} {_date(day, each)}" for each in LANGUAGES for day in days),
    ]


def periods_of(turns: Sequence[Turn], zone: tzinfo = UTC) -> frozenset[Period]:
    """Return the other days, months and years that the people of these turns may mean."""
    said = ((part.text, _day_of(turn, zone)) for turn in turns for part in turn.parts)
    return frozenset(period for text, day in said for period in periods_meant(text, day))


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


def _days_meant(turn: Turn, zone: tzinfo) -> list[date]:
    """Return the days from a week before to a week after a turn whose weekdays it names."""
    today = _day_of(turn, zone)
    named = {weekday for part in turn.parts for weekday, _ in _weekdays_in(part.text)}
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
    return datetime.fromtimestamp(turn.started_at, zone).date()


def _weekday(day: date, language: Language = _OF_PROMPTS) -> str:
    return weekdays_of(language)[day.weekday()].capitalize()


def _date(day: date, language: Language = _OF_PROMPTS) -> str:
    return f"{day.day} {_month(day, language)}"


def _month(day: date, language: Language = _OF_PROMPTS) -> str:
    return months_of(language)[day.month - 1].capitalize()
