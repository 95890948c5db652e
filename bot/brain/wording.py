"""How a moment is said aloud: 'about forty minutes ago', 'this evening, between 19:02 and 19:08'. Pure."""

from __future__ import annotations

from datetime import datetime, tzinfo

_ONES = "zero one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_SMALL = f"{_ONES} {_TEENS}".split()
_TENS = {2: "twenty", 3: "thirty", 4: "forty", 5: "fifty"}
# Nobody remembers the minute of something further back; fives sound like a person.
ROUND_FROM_MINUTES = 10


def ago(seconds: float) -> str:
    """Return how long ago something was, as one says it."""
    if seconds < 50:
        return "just now"
    minutes = max(1, round(seconds / 60))
    if minutes > ROUND_FROM_MINUTES:
        minutes = 5 * round(minutes / 5)
    if minutes == 1:
        return "about a minute ago"
    if minutes < 60:
        return f"about {number(minutes)} minutes ago"
    half_hours = round(seconds / 1800)
    hours, half = divmod(half_hours, 2)
    if half and hours == 1:
        return "about an hour and a half ago"
    if half:
        return f"about {number(hours)} and a half hours ago"
    return "about an hour ago" if hours == 1 else f"about {number(hours)} hours ago"


def number(value: int) -> str:
    """Return a whole number from 0 to 59 in words, larger ones in digits."""
    if value < 20:
        return _SMALL[value]
    if value >= 60:
        return str(value)
    tens, ones = divmod(value, 10)
    return _TENS[tens] + (f"-{_SMALL[ones]}" if ones else "")


def earlier(since: float, until: float, *, now: float, zone: tzinfo | None) -> str:
    """Return a time range of epoch seconds as 'Earlier this evening, between 19:02 and 19:08'.

    `zone` None means the machine's own.
    """
    start, end, today = (datetime.fromtimestamp(at, zone) for at in (since, until, now))
    day = _part_of_day(start) if start.date() == today.date() else "yesterday"
    if (today.date() - start.date()).days > 1:
        day = f"on {start.day} {start:%B}"
    if start.strftime("%H:%M") == end.strftime("%H:%M"):
        return f"Earlier {day}, at {start:%H:%M}"
    return f"Earlier {day}, between {start:%H:%M} and {end:%H:%M}"


def _part_of_day(moment: datetime) -> str:
    if moment.hour < 12:
        return "this morning"
    return "this afternoon" if moment.hour < 17 else "this evening"
