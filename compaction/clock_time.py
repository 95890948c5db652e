"""How a model is told a time of day and a day, everywhere: in turns, notes, quotes and prompts of folds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

# Not by `strftime`, whose names of days follow the machine's locale.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def format_clock_time(at: float, zone: tzinfo = UTC) -> str:
    """Return a time of day, like 21:04. `at`: UTC epoch seconds."""
    return datetime.fromtimestamp(at, zone).strftime("%H:%M")


def format_span(first: float, last: float, zone: tzinfo = UTC, *, now: float | None = None) -> str:
    """Return `from 21:04 to 21:31`, with the dates if these times and `now` are not all on one day."""
    days = {datetime.fromtimestamp(at, zone).date() for at in (first, last, last if now is None else now)}
    form = "%H:%M" if len(days) == 1 else "%Y-%m-%d %H:%M"
    begin, end = (datetime.fromtimestamp(at, zone).strftime(form) for at in (first, last))
    return f"from {begin} to {end}"


def format_day(at: float, zone: tzinfo = UTC) -> str:
    """Return a day and the next one, like 'Friday, 27 November 2026; tomorrow is Saturday, 28 November'."""
    today = datetime.fromtimestamp(at, zone).date()
    tomorrow = today + timedelta(days=1)
    named, following = (f"{_WEEKDAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]}" for day in (today, tomorrow))
    return f"{named} {today.year}; tomorrow is {following}"
