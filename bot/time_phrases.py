"""When somebody means: '21:04', '45 minutes ago', 'yesterday 20:00', '2026-01-31T21:04'. Pure.

The people's clock is what counts, so the zone is handed in, and a time of day is the last one that has been.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo

from bot.errors import BotError

_AGO_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_NUMBER_WORDS = {"a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "half an": 0.5, "half a": 0.5}
_AGO = re.compile(
    r"(?P<number>\d+(?:\.\d+)?|half an?|an?|one|two|three)\s*"
    r"(?P<unit>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)\b\.?"
)
_DAYS = {"today": 0, "yesterday": 1, "tonight": 0, "last night": 1}
_CLOCK = re.compile(r"(?P<hour>[01]?\d|2[0-3])[:.h](?P<minute>[0-5]\d)")
# Larger plain numbers are epoch seconds: those of 1973 and later.
_LEAST_EPOCH_S = 100_000_000.0


class MomentUnknownError(BotError):
    """Nobody can tell which moment is meant: whoever wrote it must write it otherwise."""


def moment(text: str, *, now: float, zone: tzinfo) -> float:
    """Return which moment is meant, in UTC epoch seconds. `now` likewise. Raises `MomentUnknownError`."""
    wanted = " ".join(text.strip().casefold().split())
    for read in (_epoch, _iso, _ago, _of_day):
        found = read(wanted, now, zone)
        if found is not None:
            return found
    raise MomentUnknownError(
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
    """Read spans of time: '45m', '1h 30m', 'an hour ago'."""
    del zone
    rest = text.removesuffix("ago").strip()
    spans = list(_AGO.finditer(rest))
    if not spans or _AGO.sub("", rest).replace("and", "").strip(" ,"):
        return None
    seconds = 0.0
    for span in spans:
        number = _NUMBER_WORDS.get(span["number"])
        seconds += (float(span["number"]) if number is None else number) * _AGO_UNITS_S[span["unit"][0]]
    return now - seconds


def _of_day(text: str, now: float, zone: tzinfo) -> float | None:
    """Read a time of day, with or without the day: '21:04', 'yesterday at 20:00', 'today'."""
    here = datetime.fromtimestamp(now, zone)
    day: date | None = None
    for name, back in _DAYS.items():
        if text.startswith(name):
            day = here.date() - timedelta(days=back)
            text = text.removeprefix(name).strip().removeprefix("at ").strip()
            break
    if not text:
        return None if day is None else datetime.combine(day, time(), zone).timestamp()
    clock = _CLOCK.fullmatch(text.removeprefix("at ").strip())
    if clock is None:
        return None
    at = datetime.combine(day or here.date(), time(int(clock["hour"]), int(clock["minute"])), zone)
    if day is None and at > here:
        # '23:10' at half past midnight was yesterday.
        at -= timedelta(days=1)
    return at.timestamp()
