"""Reads and writes times in the words that people use. Pure functions; the time zone is a parameter.

`parse_moment` reads '21:04', '45 minutes ago', 'yesterday 20:00', 'gestern 20 Uhr' or '2026-01-31T21:04'.
`bot.time_ahead` reads what is to come. `format_ago`, `format_time_range` and `format_ahead` write a time so that it can
be spoken: 'about 40 minutes ago'.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo

from bot.errors import BotError
from bot.texts.text import Text, counted

# By how the units begin, in English and German.
_AGO_UNITS_S = {
    "st": 3_600.0,
    "s": 1.0,
    "m": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
    "t": 86_400.0,
    "w": 604_800.0,
    "v": 900.0,
}
_NUMBER_WORDS = {
    "a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "half an": 0.5, "half a": 0.5, "a quarter of an": 0.25,
    "ein": 1.0, "eine": 1.0, "einer": 1.0, "einem": 1.0, "zwei": 2.0, "drei": 3.0, "einer halben": 0.5,
    "eine halbe": 0.5, "anderthalb": 1.5, "eineinhalb": 1.5,
}  # fmt: skip
_AGO = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)?|(?:a quarter of an|half an?|an?|one|two|three|einer halben|eine halbe|anderthalb"
    r"|eineinhalb|eine[rm]?|ein|zwei|drei)(?=\s))\s*"
    r"(?P<unit>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?"
    r"|sek|sekunden?|minuten?|std|stunden?|tag(?:en?)?|wochen?|viertelstunden?)\b\.?"
)
_DAYS = {"today": 0, "yesterday": 1, "tonight": 0, "last night": 1, "heute": 0, "gestern": 1, "vorgestern": 2}
_CLOCK = re.compile(r"(?P<hour>[01]?\d|2[0-3])[:.h](?P<minute>[0-5]\d)")
# No time is longer. To look for spans of time in 20,000 digits, as a model may write them, takes a quarter of a minute.
MOST_CHARS = 100

_MONTHS = (
    Text("January"), Text("February"), Text("March"), Text("April"), Text("May"), Text("June"), Text("July"),
    Text("August"), Text("September"), Text("October"), Text("November"), Text("December"),
)  # fmt: skip
_WEEKDAYS = (
    Text("Monday"), Text("Tuesday"), Text("Wednesday"), Text("Thursday"), Text("Friday"), Text("Saturday"),
    Text("Sunday"),
)  # fmt: skip
# From this number on, minutes are rounded to fives, as people do.
ROUND_FROM_MINUTES = 10
# What is later is told by the clock.
_MINUTES_AHEAD = 90


class TimeNotUnderstoodError(BotError):
    """`parse_moment` cannot read the text as a time; the message says how to write one."""


def parse_moment(text: str, *, now: float, zone: tzinfo) -> float:
    """Return the time that `text` names. The result and `now` are UTC epoch seconds.

    A time of day means its last occurrence. Raises `TimeNotUnderstoodError`.
    """
    if len(text) <= MOST_CHARS:
        wanted = " ".join(text.casefold().split())
        found = iso_moment(wanted, zone) or ago(wanted, now) or _of_day(wanted, now, zone)
        if found is not None:
            return found
    raise TimeNotUnderstoodError(
        f"{text.strip()[:40]!r} is not a time I know. Write it like 21:04, 45m (minutes ago), 2 hours ago, yesterday "
        "20:00, 2026-01-31 or 2026-01-31T21:04."
    )


def iso_moment(text: str, zone: tzinfo | None) -> float | None:
    """Read an ISO date, or date and time."""
    try:
        found = datetime.fromisoformat(text.upper())
        return (found if found.tzinfo is not None else found.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def ago(text: str, now: float) -> float | None:
    """Read how long ago: '45m', '1h 30m', 'an hour ago', 'vor einer Stunde'."""
    length_s = span_s(text.removesuffix("ago").removeprefix("vor ").strip())
    return None if length_s is None else now - length_s


def span_s(rest: str) -> float | None:
    """Return how many seconds a span of time has: '45m', '1h 30m', 'an hour', 'einer Stunde'."""
    spans = list(_AGO.finditer(rest))
    if not spans or _AGO.sub("", rest).replace("and", "").replace("und", "").strip(" ,"):
        return None
    seconds = 0.0
    for span in spans:
        number = _NUMBER_WORDS.get(span["number"])
        unit_s = next(length for start, length in _AGO_UNITS_S.items() if span["unit"].startswith(start))
        seconds += (float(span["number"].replace(",", ".")) if number is None else number) * unit_s
    return seconds


def _of_day(text: str, now: float, zone: tzinfo) -> float | None:
    """Read a time of day, with or without the day: '21:04', 'yesterday at 20:00', 'today'."""
    here = datetime.fromtimestamp(now, zone)
    day: date | None = None
    for name, back in _DAYS.items():
        if text.startswith(name):
            day = here.date() - timedelta(days=back)
            text = text.removeprefix(name).strip()
            break
    if not text:
        return None if day is None else datetime.combine(day, time(), zone).timestamp()
    hours, uhr, _ = text.removeprefix("at ").removeprefix("um ").strip().partition("uhr")
    clock = _CLOCK.fullmatch(f"{hours.strip()}:00" if uhr and hours.strip().isdecimal() else hours.strip())
    if clock is None:
        return None
    at = datetime.combine(day or here.date(), time(int(clock["hour"]), int(clock["minute"])), zone)
    if day is None and at > here:
        # At half past midnight, '23:10' means yesterday.
        at -= timedelta(days=1)
    return at.timestamp()


def format_ago(seconds: float) -> Text:
    """Return a time span as people say it: 'just now', 'about 40 minutes ago'."""
    if seconds < 50:
        return Text("just now")
    minutes = max(1, round(seconds / 60))
    if minutes > ROUND_FROM_MINUTES:
        minutes = 5 * round(minutes / 5)
    if minutes < 60:
        return counted(minutes, "about a minute ago", "about {count} minutes ago")
    hours, half = divmod(round(seconds / 1800), 2)
    if half:
        return counted(hours, "about an hour and a half ago", "about {count} and a half hours ago")
    return counted(hours, "about an hour ago", "about {count} hours ago")


def format_ahead(at: float, *, now: float, zone: tzinfo) -> Text:
    """Return when something will be: 'in 10 minutes', 'at 21:30' or 'on 3 December, at 21:30'.

    Times are UTC epoch seconds.
    """
    minutes = round((at - now) / 60)
    if minutes < _MINUTES_AHEAD:
        soon = counted(minutes, "in {count} minute", "in {count} minutes")
        return soon if minutes else Text("in less than a minute")
    there, here = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(now, zone)
    if there.date() == here.date():
        return Text("at {time}", time=f"{there:%H:%M}")
    day = Text("on {day} {month}", day=there.day, month=_MONTHS[there.month - 1])
    return Text("{day}, at {time}", day=day, time=f"{there:%H:%M}")


def format_today(now: float, *, zone: tzinfo | None) -> Text:
    """Return which day it is, in UTC epoch seconds. `zone` None: the machine's own."""
    here = datetime.fromtimestamp(now, zone)
    day = {"weekday": _WEEKDAYS[here.weekday()], "day": here.day, "month": _MONTHS[here.month - 1]}
    return Text("Today is {weekday}, {day} {month}.", **day)


def format_duration(duration_s: float) -> Text:
    """Return for how many minutes something has lasted."""
    minutes = round(duration_s / 60)
    return counted(minutes, "{count} minute", "{count} minutes") if minutes else Text("less than a minute")


def format_minutes(duration_s: float) -> str:
    """Return a duration as minutes and seconds: '4:05'."""
    return "{}:{:02}".format(*divmod(round(duration_s), 60))


def format_time_range(since: float, until: float, *, now: float, zone: tzinfo | None) -> Text:
    """Return a time range of epoch seconds as 'earlier this evening, between 19:02 and 19:08' or 'yesterday, at 21:00'.

    `zone` None means the machine's own.
    """
    start, end, today = (datetime.fromtimestamp(at, zone) for at in (since, until, now))
    day = _part_of_day(start) if start.date() == today.date() else Text("yesterday")
    if (today.date() - start.date()).days > 1:
        day = Text("on {day} {month}", day=start.day, month=_MONTHS[start.month - 1])
    if start.strftime("%H:%M") == end.strftime("%H:%M"):
        return Text("{day}, at {time}", day=day, time=f"{start:%H:%M}")
    return Text("{day}, between {start} and {end}", day=day, start=f"{start:%H:%M}", end=f"{end:%H:%M}")


def _part_of_day(moment: datetime) -> Text:
    if moment.hour < 12:
        return Text("earlier this morning")
    return Text("earlier this afternoon") if moment.hour < 17 else Text("earlier this evening")
