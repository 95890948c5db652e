"""Reads dates: the years, months and days that people mean, and those that a text tells. Pure.

'Two months ago', 'next year', 'in June' and 'on the 3rd' name no such month, year or day, but on a known day each means
one or a few of them. Where it is several (the last June or the next), a model reads which. A text may tell such a date
as a whole; its month and its numbers are no source of anything else.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from compaction.language.languages import LANGUAGES
from compaction.language.meaning import meaning
from compaction.language.text import sentences
from compaction.summary.said_values import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from compaction.language.language import Language

DAYS_OF_A_WEEK = 7
MONTHS_OF_A_YEAR = 12
# The months of each season, in the northern half of the world. A winter is in two years.
_SEASONS = {"spring": range(3, 6), "summer": range(6, 9), "autumn": range(9, 12), "winter": range(0)}
_DECEMBER, _FEBRUARY = 12, 2
# 'Winter 2026/27'.
_TWO_YEARS = re.compile(r"(?<![^\W_])((?:19|20)\d\d)[/–-](\d\d(?:\d\d)?)(?![^\W_])")
_SATURDAY = 5
_LAST_DAY = 31
_WORD = re.compile(r"[^\W_]+")
# '3rd', and '3.' with more of its sentence after it ('am 3. habe ich frei').
_ORDINAL = re.compile(r"(?<![^\W_])(\d{1,2})(?:st|nd|rd|th|\.(?=\s+[^\W\d_A-ZÄÖÜ]))(?![^\W_])")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
# An abbreviation of a month or a weekday has at least so many letters: 'Sept'.
LEAST_LETTERS = 3
# So many words may stand between a day and its month ('the 3rd of May'), or the first day and the last ('2 to 4 May').
_BETWEEN = 2
# 'Day after tomorrow'.
_LONGEST_DAY = 3
# No month and the words before it take more.
_NEAR_CHARS = 30
# A longer number counts no weeks or years.
_COUNT_DIGITS = 3


def weekdays_of(language: Language) -> list[str]:
    """Return a language's weekdays from Monday on: the first of its named values."""
    return list(dict.fromkeys(language.named_values.values()))[:DAYS_OF_A_WEEK]


def months_of(language: Language) -> list[str]:
    """Return a language's months from January on, which follow its weekdays."""
    return list(dict.fromkeys(language.named_values.values()))[DAYS_OF_A_WEEK:][:MONTHS_OF_A_YEAR]


WEEKDAYS = {name: number for each in LANGUAGES for number, name in enumerate(weekdays_of(each))}
MONTHS = {name: number for each in LANGUAGES for number, name in enumerate(months_of(each), 1)}
_TIMES = [(each, {each.stem(word): what for word, what in each.times.items()}) for each in LANGUAGES]
_DAYS_AWAY = {said: int(what) for each in LANGUAGES for said, what in each.times.items() if what[0] in "+-"}
_STOPWORDS = frozenset(word for each in LANGUAGES for word in each.stopwords)


class Period(NamedTuple):
    """A day, a month, a season or a year. `month`, `day`: 0 where it is longer. `weekend`: a day of a weekend that was
    said. `season`: as the languages' `times` have it. `until`: the year in which a winter ends that is told by both.
    """

    year: int
    month: int = 0
    day: int = 0
    weekend: bool = False
    season: str = ""
    until: int = 0


# -- what is meant ----------------------------------------------------------------------------------------------


def periods_meant(text: str, today: date) -> frozenset[Period]:
    """Return the periods that somebody may mean who says this on that day."""
    said = _words(text)
    months = {MONTHS[value] for each in sentences(text) for value in meaning(each).values if value in MONTHS}
    found = {each for place in range(len(said)) for each in _of_words(said, place, today)}
    found.update(map(_of_day, days_named(text, today)))
    # 'In May last year'.
    years = {each.year for each in found if each == Period(each.year)}
    found.update(Period(year, month) for year in years for month in months)
    # 'The summer of next year'.
    seasons = _SEASONS.keys() & set(map(_time, said))
    found.update(Period(year, season=season) for year in years for season in seasons)
    found.update(each for month in months for each in _of_month(month, today))
    days = {int(ordinal[1]) for ordinal in _ORDINAL.finditer(text) if not _has_month(ordinal)}
    found.update(each for day in days for each in _of_day_number(day, today))
    return frozenset(found)


def days_named(text: str, today: date) -> frozenset[date]:
    """Return the days that 'tomorrow', 'vorgestern' and the like mean on that day."""
    said = _words(text)
    found: set[date] = set()
    place = 0
    while place < len(said):
        # 'The day after tomorrow' is not tomorrow.
        away, length = _days_away(said[place : place + _LONGEST_DAY])
        found |= {today + timedelta(days=away)} if away else set()
        place += length
    return frozenset(found)


def _days_away(said: Sequence[str]) -> tuple[int, int]:
    """Return how many days from today these words or the first of them mean (0: none), and how many words those are."""
    for phrase in (said, said[:1]):
        if away := _DAYS_AWAY.get("_".join(phrase)):
            return away, len(phrase)
    return 0, 1


def _words(text: str) -> list[str]:
    return [each.casefold() for each in _WORD.findall(text)]


def _of_words(said: Sequence[str], place: int, today: date) -> Iterator[Period]:
    """Yield what 'two weeks ago', 'next month' or 'the weekend' means."""
    unit = _time(said[place])
    near = (place - 2, place - 1, place + 1)
    lead, last, after = (_time(said[at]) if 0 <= at < len(said) else "" for at in near)
    if unit == "weekend":
        days = (today + timedelta(days=each) for each in range(-DAYS_OF_A_WEEK, DAYS_OF_A_WEEK + 1))
        yield from (_of_day(each, weekend=True) for each in days if each.weekday() >= _SATURDAY)
    elif unit in _SEASONS:
        yield from _of_season(unit, last, today) if _SEASONS[unit] else _of_winter(unit, last, today)
    elif last in {"last", "next"}:
        yield from _beside(unit, -1 if last == "last" else 1, today)
    elif unit and place and (count := _count(said[place - 1])):
        if after == "ago" or lead == "before":
            yield from _away(unit, -count, today)
        elif lead == "in":
            yield from _away(unit, count, today)


def _time(word: str) -> str:
    """Return what a word tells of a time, as the languages' `times` have it; empty if nothing."""
    return next((times[stem] for language, times in _TIMES if (stem := language.stem(word)) in times), "")


def _count(word: str) -> int:
    """Return the number that a word is; 0 if it is none."""
    number = _time(word) or str(NUMBERS.get(word, word))
    return int(number) if number.isdecimal() and len(number) <= _COUNT_DIGITS else 0


def _away(unit: str, amount: int, today: date) -> Iterator[Period]:
    """Yield the period that is so many days, weeks, months or years away."""
    if unit in {"day", "week"}:
        yield _of_day(today + timedelta(days=amount * (DAYS_OF_A_WEEK if unit == "week" else 1)))
    elif unit == "month":
        months = MONTHS_OF_A_YEAR * today.year + today.month - 1 + amount
        yield Period(months // MONTHS_OF_A_YEAR, months % MONTHS_OF_A_YEAR + 1)
    elif unit == "year":
        yield Period(today.year + amount)


def _beside(unit: str, amount: int, today: date) -> Iterator[Period]:
    """Yield the period before or after this one. No day of a week is certain, but its months are."""
    if unit == "week":
        monday = today + timedelta(days=DAYS_OF_A_WEEK * amount - today.weekday())
        yield from (Period(each.year, each.month) for each in (monday, monday + timedelta(days=DAYS_OF_A_WEEK - 1)))
    else:
        yield from _away(unit, amount, today)


def _of_season(season: str, beside: str, today: date) -> Iterator[Period]:
    """Yield the seasons of this name that may be meant: 'last summer', 'next summer' (two in spring), 'in summer'."""
    months = _SEASONS[season]
    begun, over = today.month >= months[0], today.month > months[-1]
    last = {today.year if begun else today.year - 1} | ({today.year - 1} if beside == "last" else set())
    coming = {today.year + 1 if over else today.year} | ({today.year + 1} if beside == "next" else set())
    years = last if beside == "last" else coming if beside == "next" else last | coming
    yield from (Period(year, season=season) for year in years)


def _of_winter(winter: str, beside: str, today: date) -> Iterator[Period]:
    """Yield the last winter that is over, or the next that has not begun, with both its years.

    One year alone may be that of its end or of its beginning.
    """
    begun = today.year if today.month == _DECEMBER else today.year - 1
    last = begun if _FEBRUARY < today.month < _DECEMBER else begun - 1
    if beside in {"last", "next"}:
        year = last if beside == "last" else begun + 1
        yield Period(year, season=winter, until=year + 1)


def _of_month(month: int, today: date) -> Iterator[Period]:
    """Yield the months of this name in the year before and the year to come."""
    for year in (today.year - 1, today.year, today.year + 1):
        away = MONTHS_OF_A_YEAR * (year - today.year) + month - today.month
        if abs(away) <= MONTHS_OF_A_YEAR:
            yield Period(year, month)


def _has_month(ordinal: re.Match[str]) -> bool:
    """Return whether the month of a day is said beside it: 'the 3rd of February'."""
    text = ordinal.string
    before = _WORD.findall(text[max(0, ordinal.start() - _NEAR_CHARS) : ordinal.start()])[-1:]
    after = _WORD.findall(text[ordinal.end() : ordinal.end() + _NEAR_CHARS])[:_BETWEEN]
    return any(map(_month_of, (*before, *after)))


def _of_day_number(number: int, today: date) -> Iterator[Period]:
    """Yield the last and the next day that has this number in its month."""
    # Every other month has no 31st.
    around = (today + timedelta(days=days) for days in range(-2 * _LAST_DAY, 2 * _LAST_DAY + 1))
    days = [each for each in around if each.day == number]
    last, coming = [each for each in days if each <= today][-1:], [each for each in days if each >= today][:1]
    yield from map(_of_day, (*last, *coming))


def _of_day(day: date, *, weekend: bool = False) -> Period:
    return Period(day.year, day.month, day.day, weekend)


# -- what is told -----------------------------------------------------------------------------------------------


def date_spans(sentence: str, meant: AbstractSet[Period]) -> list[tuple[int, int]]:
    """Return where a sentence has the words with which its dates tell one of these periods.

    Of '3 February 2027' that is the year alone if only the year is meant.
    """
    found = list(_WORD.finditer(sentence))
    written = [match.group() for match in found]
    # Nobody said whether it is the Saturday or the Sunday.
    if not any(_time(word.casefold()) == "weekend" for word in written):
        meant = {each for each in meant if not each.weekend}
    known: set[int] = set()
    bare = set(range(len(written)))
    for place, word in enumerate(written):
        if month := _month_of(word):
            days = _days_beside(written, place)
            year_at = max((place, *days)) + 1
            year = int(written[year_at]) if year_at < len(written) and _YEAR.fullmatch(written[year_at]) else 0
            bare -= {year_at} if year else set()
            known |= _known_places(written, days, (place, month), (year_at, year), meant)
    for at in sorted(bare):
        if _YEAR.fullmatch(written[at]) and not _counts(written, at):
            known |= _places_of_year(written, at, meant)
    return sorted([*(found[place].span() for place in known), *_winter_spans(sentence, meant)])


def is_short_for(name: str, values: AbstractSet[str], sentence: str) -> bool:
    """Return whether a name with a number beside it is short for one of these weekdays and months ('Wed, 3 Sept').

    `name`: in lower case. Without a number, Jan may be a person.
    """
    beside = rf"\d\W{{1,2}}{re.escape(name)}\b|\b{re.escape(name)}\W{{1,2}}\d"
    named = values & (WEEKDAYS.keys() | MONTHS.keys())
    return (
        len(name) >= LEAST_LETTERS
        and any(each.startswith(name) for each in named)
        and re.search(beside, sentence, re.IGNORECASE) is not None
    )


def _known_places(
    written: Sequence[str],
    days: Sequence[int],
    month: tuple[int, int],
    year: tuple[int, int],
    meant: AbstractSet[Period],
) -> set[int]:
    """Return the places of those parts of a date that a period has. `month`, `year`: the place, and which (0: none)."""
    told = {month[0]} | ({year[0]} if year[1] else set())
    fitting = [each for each in meant if each.month == month[1] and year[1] in {0, each.year}]
    known = {at for at in days if any(each.day == _day_of(written[at]) for each in fitting)}
    if known:
        return told | known
    if not days and fitting:
        return told
    return {year[0]} if year[1] and any(not each.day for each in fitting) else set()


def _days_beside(written: Sequence[str], month_at: int) -> list[int]:
    """Return the places of the days of a month: '2-4 May', 'the 2nd or the 3rd of May', 'May 2'."""
    days: list[int] = []
    between = 0
    for at in range(month_at - 1, -1, -1):
        between = 0 if _day_of(written[at]) else between + 1
        if between > _BETWEEN or not (_day_of(written[at]) or written[at].islower()):
            break
        days += [at] if not between else []
    return days or [at for at in (month_at + 1,) if at < len(written) and _day_of(written[at])]


def _day_of(word: str) -> int:
    """Return the day of a month that a word is; 0 if it is none."""
    day = _DAY.fullmatch(word)
    return int(day[1]) if day is not None and int(day[1]) <= _LAST_DAY else 0


def _month_of(word: str) -> int:
    """Return the number of the month that a word names; 0 if it names none."""
    return _named(word, MONTHS) or 0


def _named(word: str, names: Mapping[str, int]) -> int | None:
    """Return what a word with a capital letter names, also in an abbreviation."""
    if len(word) < LEAST_LETTERS or not word[0].isupper():
        return None
    return next((number for name, number in names.items() if name.startswith(word.casefold())), None)


def _places_of_year(written: Sequence[str], at: int, meant: AbstractSet[Period]) -> set[int]:
    """Return the places of a year and of the season before it ('summer 2027', 'the summer of 2027') if one of these
    periods has them.
    """
    year = int(written[at])
    before = written[at - 1].casefold() if at else ""
    season_at = at - 2 if before in _STOPWORDS else at - 1
    season = _time(written[season_at].casefold()) if season_at >= 0 else ""
    if Period(year, season=season) in meant and season in _SEASONS:
        return {season_at, at}
    # 'In 2025'.
    return {at} if before in _STOPWORDS and Period(year) in meant else set()


def _winter_spans(sentence: str, meant: AbstractSet[Period]) -> Iterator[tuple[int, int]]:
    """Yield where a sentence has both years of a winter: 'winter 2026/27', 'the winter of 2026/2027'."""
    for years in _TWO_YEARS.finditer(sentence):
        year = int(years[1])
        before = [each.casefold() for each in _WORD.findall(sentence[: years.start()])][-2:]
        name = next((each for each in reversed(before) if each not in _STOPWORDS), "")
        if years[2] in {str(year + 1), str(year + 1)[2:]} and Period(year, season=_time(name), until=year + 1) in meant:
            yield years.span()


def _counts(written: Sequence[str], at: int) -> bool:
    """Return whether a number counts what is named after it ('2025 euros')."""
    after = written[at + 1] if at + 1 < len(written) else ""
    return bool(after) and not after[0].isupper() and after.casefold() not in _STOPWORDS
