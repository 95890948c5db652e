"""Finds the time to come that somebody names: 'tomorrow at 8', 'in half an hour', 'am Freitag um halb neun'. Pure; the
time zone is a parameter.

Days are read by dateparser (BSD, maintained, 0.5 ms for each try), which knows their names in many languages. Of times
of day it knows only those in figures, it takes 'half an hour' for an hour and 'die' for Tuesday: it alone read 24 of 52
sentences rightly. So spans and times of day are read here. ctparse read 35, and has not been maintained since 2022;
recognizers-text and parsedatetime know no German.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

from dateparser.date import DateDataParser

from bot.texts.text import languages
from bot.time_phrases import MOST_CHARS, ago, iso_moment, span_s
from compaction.language.languages import LANGUAGES

# Words of a sentence that are looked at, and of a time in it.
_MOST_WORDS: Final = 40
_LONGEST: Final = 8
# What stands before a time, and between a day and its hour. 'To': 'set a timer to five minutes'.
_BEFORE: Final = frozenset(
    ["in", "for", "to", "at", "by", "on", "the", "this", "um", "gegen", "am", "im", "auf", "für"]
)
# With what no time ends: dateparser looks past such words, and they belong to what follows.
_NOT_LAST: Final = _BEFORE.union(*(each.stopwords - each.numbers.keys() for each in LANGUAGES))
# The parts of a day, with what they add to an hour below twelve.
_PARTS: Final[dict[str, int]] = {
    **dict.fromkeys(["morning", "früh", "morgens", "vormittag", "vormittags"], 0),
    **dict.fromkeys(["tonight", "night", "evening", "afternoon", "abend", "abends", "nachmittag", "nachmittags"], 12),
}
# When a day is named and no hour: in the first half of the day, and in the second.
_HOURS: Final = {0: 9, 12: 18}
_NAMED: Final = {"noon": 12, "midday": 12, "mittag": 12, "mittags": 12, "midnight": 24, "mitternacht": 24}
_CLOCK: Final = re.compile(
    r"(?P<at>(?:at|by|um|gegen)\s+)?(?:(?P<part>half|halb|quarter|viertel|\d{1,2})\s+(?P<way>past|to|nach|vor)?\s*)?"
    r"(?P<hour>\d{1,2})(?:[:.h](?P<minute>[0-5]\d))?\s*(?P<unit>o'clock|uhr|[ap]\.?m\.?)?(?:\s+(?P<more>[0-5]?\d))?"
)
# Abbreviations of days are words too: 'die', 'so' and 'do' are days in German.
_SHORTEST_DAY: Final = 4


class MomentAhead(NamedTuple):
    """A time that a sentence names, in UTC epoch seconds, and the sentence without it."""

    at: float
    rest: str


class _TimeOfDay(NamedTuple):
    """Minutes from midnight on. `is_vague`: it may be twelve hours later."""

    minutes: int
    is_vague: bool


def find_moment_ahead(text: str, *, now: float, zone: tzinfo | None) -> MomentAhead | None:
    """Return the first time that a sentence names, however long the sentence is; None: it names none. It may be over.

    `now`: UTC epoch seconds. `zone` None: the machine's own.
    """
    said = text.split()
    plain = [word.strip(",.!?;:") for word in said[:_MOST_WORDS]]
    for first in range(len(plain)):
        for last in range(min(len(plain), first + _LONGEST), first, -1):
            if plain[last - 1].casefold() in _NOT_LAST:
                continue
            if (at := parse_moment_ahead(" ".join(plain[first:last]), now=now, zone=zone)) is not None:
                return MomentAhead(at, " ".join([*said[:first], *said[last:]]))
    return None


def parse_moment_ahead(text: str, *, now: float, zone: tzinfo | None) -> float | None:
    """Return the time that `text` names from now on: '10 minutes', 'half an hour', 'zehn Minuten', '21:30', 'tomorrow
    at 8' or an ISO date and time; None if it names none, or has other words. A time of day means its next occurrence.
    Other times may be over.
    """
    wanted = " ".join(text.casefold().split())
    if len(wanted) > MOST_CHARS or not wanted:
        return None
    figures = _in_figures(wanted)
    for said in (wanted, figures):
        first, _, rest = said.partition(" ")
        if (length_s := span_s(rest if first in _BEFORE else said)) is not None:
            return now + length_s
        if said.endswith(" ago") or first == "vor":
            return ago(said, now)
    return iso_moment(wanted, zone) or _of_day(figures.split(), datetime.fromtimestamp(now, zone))


def _in_figures(text: str) -> str:
    """Return a lower-case text with its number words as figures: 'twenty-five' is '25'."""
    numbers = {word: digits for each in LANGUAGES for word, digits in each.numbers.items()}
    figures = re.sub(r"\w+", lambda word: numbers.get(word[0], word[0]), re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text))
    figures = re.sub(r"\b([2-9])0 ([1-9])\b", r"\1\2", figures)
    return re.sub(r"\b(?:an?|1) (\w+) and a half\b", r"1.5 \1", re.sub(r"\b(\d+) and a half\b", r"\1.5", figures))


def _of_day(said: list[str], here: datetime) -> float | None:
    """Read a time of day with or without its day, in either order. `here`: the time now."""
    parts = [_PARTS[word] for word in said if word in _PARTS]
    # 'Tonight' is a day too.
    rest = [word for word in said if word not in _PARTS]
    for cut in range(len(rest)):
        for clock, day in ((rest[cut:], rest[:cut]), (rest[: cut + 1], rest[cut + 1 :])):
            if (time_of_day := _time_of_day(" ".join(clock), is_hour=bool(parts))) is not None:
                return _moment(time_of_day, day, parts, here)
    return _moment(None, rest, parts, here)


def _moment(at: _TimeOfDay | None, day: list[str], parts: list[int], here: datetime) -> float | None:
    names_day = any(word not in _BEFORE for word in day)
    date = _date(day, here) if names_day else here
    if date is None or (at is None and not (names_day or parts)):
        return None
    added = max(parts, default=0)
    minutes, is_vague = (60 * _HOURS[added], False) if at is None else at
    minutes += 60 * added if at is not None and minutes < 720 else 0
    midnight = datetime.combine(date.date(), time())
    later = [midnight + timedelta(minutes=minutes + more) for more in (0, 720, 1_440, 2_160)]
    if parts or not is_vague:
        del later[1::2]
    moments = [each.replace(tzinfo=here.tzinfo) for each in later]
    if names_day or at is None:
        return moments[0].timestamp()
    return next(each for each in moments if each > here).timestamp()


def _time_of_day(text: str, *, is_hour: bool) -> _TimeOfDay | None:
    """Read a time of day in figures: 'at 8', 'half past 9', 'um 21 uhr 30', '9:15 pm', 'noon'. `is_hour`: a part of the
    day is named, so a bare number is its hour ('7 tomorrow morning').
    """
    name = text.removeprefix("at ").removeprefix("um ")
    if name in _NAMED:
        return _TimeOfDay(60 * _NAMED[name], is_vague=False)
    found = _CLOCK.fullmatch(text)
    if found is None or not (is_hour or found["at"] or found["part"] or found["minute"] or found["unit"]):
        return None
    part, way, unit = found["part"], found["way"], (found["unit"] or "").replace(".", "")
    if (found["more"] and unit != "uhr") or (part and not way and part not in {"half", "halb"}):
        return None
    beside = {"half": 30, "halb": 30, "quarter": 15, "viertel": 15}.get(part) or int(part or 0)
    hour = int(found["hour"]) % 12 + 12 * (unit == "pm") if unit in {"am", "pm"} else int(found["hour"])
    if hour > 24 or beside > 59:
        return None
    # 'Halb neun' is half past eight.
    minutes = 60 * hour + int(found["minute"] or found["more"] or 0)
    minutes += -beside if way in {"to", "vor"} or part == "halb" else beside
    return _TimeOfDay(minutes, is_vague=not (found["minute"] or unit) and 1 <= hour <= 12)


def _date(words: list[str], here: datetime) -> datetime | None:
    """Return the day that words name; None: none, or a longer time such as a month."""
    named = [word for word in words if word not in _BEFORE]
    if all(len(word) < _SHORTEST_DAY for word in named):
        return None
    # Only the day of `here` counts, and dateparser keeps what it was given last.
    settings = {"PREFER_DATES_FROM": "future", "RELATIVE_BASE": datetime.combine(here.date(), time())}
    parser = DateDataParser(languages=list(languages()), settings=settings)
    found = parser.get_date_data(" ".join(named))
    is_day = found.date_obj is not None and found.period == "day" and found.date_obj.time() == time()
    return found.date_obj if is_day else None
