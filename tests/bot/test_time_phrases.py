"""Reading times that people write, and writing times that a voice can speak."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.time_phrases import (
    TimeNotUnderstoodError,
    format_ago,
    format_ahead,
    format_time_range,
    format_today,
    parse_moment,
)

ZONE = timezone(timedelta(hours=2))
# Wednesday, half past midnight in `ZONE`.
NOW = datetime(2026, 3, 4, 0, 30, tzinfo=ZONE).timestamp()


def at(day: int, hour: int, minute: int = 0) -> float:
    """Return the epoch time of a moment in March 2026 in `ZONE`."""
    return datetime(2026, 3, day, hour, minute, tzinfo=ZONE).timestamp()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("23:10", at(3, 23, 10)),
        ("00:15", at(4, 0, 15)),
        ("at 0:15", at(4, 0, 15)),
        ("21.04", at(3, 21, 4)),
        ("yesterday at 20:00", at(3, 20)),
        ("yesterday", at(3, 0)),
        ("today", at(4, 0)),
        ("45m", NOW - 2_700),
        ("45 minutes ago", NOW - 2_700),
        ("1h 30m", NOW - 5_400),
        ("An Hour Ago", NOW - 3_600),
        ("half an hour ago", NOW - 1_800),
        ("two days ago", NOW - 172_800),
        ("gestern um 20:00 Uhr", at(3, 20)),
        ("vorgestern", at(2, 0)),
        ("Heute", at(4, 0)),
        ("um 23 Uhr", at(3, 23)),
        ("vor 2 Stunden", NOW - 7_200),
        ("vor einer halben Stunde", NOW - 1_800),
        ("vor 1,5 Std.", NOW - 5_400),
        ("vor einem Tag und 30 Sekunden", NOW - 86_430),
        ("2026-03-01", at(1, 0)),
        ("2026-03-01T21:04", at(1, 21, 4)),
        ("2026-03-01T21:04+00:00", at(1, 23, 4)),
        ("2026-03-01t19:04z", at(1, 21, 4)),
    ],
)
def test_people_and_models_write_times_in_many_ways(text: str, meant: float) -> None:
    """Many notations of a time are understood; a time of day means its last occurrence."""
    assert parse_moment(text, now=NOW, zone=ZONE) == pytest.approx(meant)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "25:00", "m", "12", "9" * 400, "nan", "inf", "2026-13-01", "45 minutes to", "1 h " * 30],
    ids=lambda text: text[:13],
)
def test_what_nobody_understands_is_told_with_examples(text: str) -> None:
    """The error for a text that is not a time shows how to write one."""
    with pytest.raises(TimeNotUnderstoodError, match="21:04"):
        parse_moment(text, now=NOW, zone=ZONE)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_sentence(text: str) -> None:
    """Any text gives a time or a `TimeNotUnderstoodError`, and the same text always gives the same time."""
    try:
        found = parse_moment(text, now=NOW, zone=ZONE)
    except TimeNotUnderstoodError:
        return
    assert found == parse_moment(text, now=NOW, zone=ZONE)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (49, "just now"),
        (60, "about a minute ago"),
        (9 * 60, "about 9 minutes ago"),
        (23 * 60, "about 25 minutes ago"),
        (41 * 60, "about 40 minutes ago"),
        (57 * 60, "about 55 minutes ago"),
        (62 * 60, "about an hour ago"),
        (91 * 60, "about an hour and a half ago"),
        (150 * 60, "about 2 and a half hours ago"),
        (182 * 60, "about 3 hours ago"),
    ],
)
def test_how_long_ago(seconds: float, words: str) -> None:
    """Short spans are given to the minute and longer ones rounded, in words that a voice can speak."""
    assert format_ago(seconds) == words


def utc(day: int, hour: int, minute: int) -> float:
    """Return an epoch time in November 2026."""
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [
        (utc(20, 19, 2), utc(20, 19, 8), "earlier this evening, between 19:02 and 19:08"),
        (utc(20, 14, 2), utc(20, 14, 2), "earlier this afternoon, at 14:02"),
        (utc(20, 9, 0), utc(20, 9, 30), "earlier this morning, between 09:00 and 09:30"),
        (utc(19, 23, 50), utc(20, 0, 10), "yesterday, between 23:50 and 00:10"),
        (utc(11, 9, 0), utc(11, 9, 30), "on 11 November, between 09:00 and 09:30"),
    ],
)
def test_a_time_range(since: float, until: float, words: str) -> None:
    """A time range is described by the day or part of the day and the clock times, in the listener's time zone."""
    assert format_time_range(since, until, now=utc(20, 20, 0), zone=UTC) == words


@pytest.mark.parametrize(
    ("then", "words"),
    [
        (NOW + 20, "in less than a minute"),
        (NOW + 60, "in 1 minute"),
        (NOW + 5_340, "in 89 minutes"),
        (at(4, 21, 30), "at 21:30"),
        (at(5, 8), "on 5 March, at 08:00"),
    ],
)
def test_what_is_to_come_is_told_as_people_say_it(then: float, words: str) -> None:
    """Soon by its distance, later by the clock."""
    assert format_ahead(then, now=NOW, zone=ZONE) == words


def test_the_day_is_told_in_the_zone() -> None:
    """At half past midnight there it is still the day before in UTC."""
    told = [format_today(NOW, zone=zone) for zone in (ZONE, UTC)]
    assert told == ["Today is Wednesday, 4 March.", "Today is Tuesday, 3 March."]
