"""Reads and writes times in the words that people use. Pure functions; the time zone is a parameter.

`parse_moment` reads '21:04', '45 minutes ago', 'yesterday 20:00', 'gestern 20 Uhr' or '2026-01-31T21:04'.
`format_ago` and `format_time_range` write a time so that it can be spoken: 'about forty minutes ago'.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo

from bot.errors import BotError

# By how the units begin, in English and German.
_AGO_UNITS_S = {"st": 3_600.0, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "t": 86_400.0, "w": 604_800.0}
_NUMBER_WORDS = {
    "a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "half an": 0.5, "half a": 0.5,
    "ein": 1.0, "eine": 1.0, "einer": 1.0, "einem": 1.0, "zwei": 2.0, "drei": 3.0, "einer halben": 0.5,
}  # fmt: skip
_AGO = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)?|half an?|an?|one|two|three|einer halben|eine[rm]?|ein|zwei|drei)\s*"
    r"(?P<unit>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?"
    r"|sek|sekunden?|minuten?|std|stunden?|tag(?:en?)?|wochen?)\b\.?"
)
_DAYS = {"today": 0, "yesterday": 1, "tonight": 0, "last night": 1, "heute": 0, "gestern": 1, "vorgestern": 2}
_CLOCK = re.compile(r"(?P<hour>[01]?\d|2[0-3])[:.h](?P<minute>[0-5]\d)")
# Plain numbers of at least this value are epoch seconds (1973 and later).
_LEAST_EPOCH_S = 100_000_000.0

_ONES = "zero one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_SMALL = f"{_ONES} {_TEENS}".split()
_TENS = {2: "twenty", 3: "thirty", 4: "forty", 5: "fifty"}
# From this number on, minutes are rounded to fives, as people do.
ROUND_FROM_MINUTES = 10


class TimeNotUnderstoodError(BotError):
    """`parse_moment` cannot read the text as a time; the message says how to write one."""


def parse_moment(text: str, *, now: float, zone: tzinfo) -> float:
    """Return the time that `text` names. The result and `now` are UTC epoch seconds.

    A time of day means its last occurrence. Raises `TimeNotUnderstoodError`.
    """
    wanted = " ".join(text.strip().casefold().split())
    for read in (_epoch, _iso, _ago, _of_day):
        found = read(wanted, now, zone)
        if found is not None:
            return found
    raise TimeNotUnderstoodError(
        f"{text.strip()[:40]!r} is not a time I know. Write it like 21:04, 45m (minutes ago), 2 hours ago, yesterday "
        "20:00, 2026-01-31 or 2026-01-31T21:04."
    )


def _epoch(text: str, now: float, zone: tzinfo) -> float | None:
    del now, zone
    try:
        value = float(text)
    except ValueError:
        return None
    return value if _LEAST_EPOCH_S <= value < 1e11 else None


def _iso(text: str, now: float, zone: tzinfo) -> float | None:
    del now
    try:
        found = datetime.fromisoformat(text.upper())
        return (found if found.tzinfo is not None else found.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _ago(text: str, now: float, zone: tzinfo) -> float | None:
    """Read spans of time: '45m', '1h 30m', 'an hour ago', 'vor einer Stunde'."""
    del zone
    rest = text.removesuffix("ago").removeprefix("vor ").strip()
    spans = list(_AGO.finditer(rest))
    if not spans or _AGO.sub("", rest).replace("and", "").replace("und", "").strip(" ,"):
        return None
    seconds = 0.0
    for span in spans:
        number = _NUMBER_WORDS.get(span["number"])
        unit_s = next(length for start, length in _AGO_UNITS_S.items() if span["unit"].startswith(start))
        seconds += (float(span["number"].replace(",", ".")) if number is None else number) * unit_s
    return now - seconds


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


def format_ago(seconds: float) -> str:
    """Return a time span as people say it: 'just now', 'about forty minutes ago'."""
    if seconds < 50:
        return "just now"
    minutes = max(1, round(seconds / 60))
    if minutes > ROUND_FROM_MINUTES:
        minutes = 5 * round(minutes / 5)
    if minutes == 1:
        return "about a minute ago"
    if minutes < 60:
        return f"about {spell_number(minutes)} minutes ago"
    half_hours = round(seconds / 1800)
    hours, half = divmod(half_hours, 2)
    if half and hours == 1:
        return "about an hour and a half ago"
    if half:
        return f"about {spell_number(hours)} and a half hours ago"
    return "about an hour ago" if hours == 1 else f"about {spell_number(hours)} hours ago"


def spell_number(value: int) -> str:
    """Return a whole number from 0 to 59 in words, larger ones in digits."""
    if value < 20:
        return _SMALL[value]
    if value >= 60:
        return str(value)
    tens, ones = divmod(value, 10)
    return _TENS[tens] + (f"-{_SMALL[ones]}" if ones else "")


def format_time_range(since: float, until: float, *, now: float, zone: tzinfo | None) -> str:
    """Return a time range of epoch seconds as 'Earlier this evening, between 19:02 and 19:08' or 'Yesterday, at 21:00'.

    `zone` None means the machine's own.
    """
    start, end, today = (datetime.fromtimestamp(at, zone) for at in (since, until, now))
    day = f"Earlier {_part_of_day(start)}" if start.date() == today.date() else "Yesterday"
    if (today.date() - start.date()).days > 1:
        day = f"On {start.day} {start:%B}"
    if start.strftime("%H:%M") == end.strftime("%H:%M"):
        return f"{day}, at {start:%H:%M}"
    return f"{day}, between {start:%H:%M} and {end:%H:%M}"


def _part_of_day(moment: datetime) -> str:
    if moment.hour < 12:
        return "this morning"
    return "this afternoon" if moment.hour < 17 else "this evening"
