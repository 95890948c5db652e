"""Finding the time to come that people name."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.time_ahead import find_moment_ahead, parse_moment_ahead

ZONE = ZoneInfo("Europe/Berlin")
# A Thursday evening.
HERE = datetime(2026, 11, 19, 20, 0, tzinfo=ZONE)
NOW = HERE.timestamp()


def at(day: int, hour: int, minute: int = 0) -> float:
    """Return the epoch time of a moment in November 2026 in `ZONE`."""
    return datetime(2026, 11, day, hour, minute, tzinfo=ZONE).timestamp()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("10 minutes", NOW + 600),
        ("5 min", NOW + 300),
        ("90 seconds", NOW + 90),
        ("in twenty-five minutes", NOW + 1_500),
        ("half an hour", NOW + 1_800),
        ("a quarter of an hour", NOW + 900),
        ("an hour and a half", NOW + 5_400),
        ("two and a half hours", NOW + 9_000),
        ("1 hour 30 minutes", NOW + 5_400),
        ("three days", NOW + 259_200),
        ("zehn Minuten", NOW + 600),
        ("fünfundzwanzig Minuten", NOW + 1_500),
        ("in einer halben Stunde", NOW + 1_800),
        ("einer Viertelstunde", NOW + 900),
        ("anderthalb Stunden", NOW + 5_400),
        ("two hours ago", NOW - 7_200),
        ("vor einer Stunde", NOW - 3_600),
        ("21:30", at(19, 21, 30)),
        ("9:30", at(20, 9, 30)),
        ("at 9.15 pm", at(19, 21, 15)),
        ("12 am", at(20, 0)),
        ("at eight", at(20, 8)),
        ("at nine", at(19, 21)),
        ("half past nine", at(19, 21, 30)),
        ("quarter to ten", at(19, 21, 45)),
        ("um halb neun", at(19, 20, 30)),
        ("Viertel nach neun", at(19, 21, 15)),
        ("21 Uhr", at(19, 21)),
        ("um 21 Uhr 30", at(19, 21, 30)),
        ("8 Uhr", at(20, 8)),
        ("at midnight", at(20, 0)),
        ("tomorrow at 8", at(20, 8)),
        ("tomorrow morning at nine", at(20, 9)),
        ("seven tomorrow morning", at(20, 7)),
        ("morgen früh sieben", at(20, 7)),
        ("nine in the evening", at(19, 21)),
        ("tomorrow evening", at(20, 18)),
        ("tomorrow", at(20, 9)),
        ("tonight at 9", at(19, 21)),
        ("Friday at 6pm", at(20, 18)),
        ("next monday at noon", at(23, 12)),
        ("on the 21st at 10", at(21, 10)),
        ("morgen um 8", at(20, 8)),
        ("morgen früh um acht", at(20, 8)),
        ("heute Abend um zehn", at(19, 22)),
        ("am Freitag um 18 Uhr", at(20, 18)),
        ("übermorgen", at(21, 9)),
        ("yesterday at 20:00", at(18, 20)),
        ("2026-11-21T08:00", at(21, 8)),
        *((text, None) for text in ("", "soon", "bald", "minutes", "25:00", "at 61 past 3", "8", "die", "so", "May")),
        ("9" * 200, None),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_is_to_come_is_read_as_people_say_it(text: str, meant: float | None) -> None:
    """A time of day is the next one, also twelve hours later if it may be. A day without an hour is its morning."""
    assert parse_moment_ahead(text, now=NOW, zone=ZONE) == meant


@pytest.mark.parametrize(
    ("text", "meant", "rest"),
    [
        ("remind me tomorrow at 8 to call mum", at(20, 8), "remind me to call mum"),
        ("In an hour, remind us to stop.", NOW + 3_600, "remind us to stop."),
        ("remind me in two hours to take 3 pills", NOW + 7_200, "remind me to take 3 pills"),
        ("remind cy tomorrow morning at nine about the tickets", at(20, 9), "remind cy about the tickets"),
        ("set a timer to five minutes!", NOW + 300, "set a timer"),
        ("Erinnere mich am Freitag um 18 Uhr an die Pizza.", at(20, 18), "Erinnere mich an die Pizza."),
    ],
)
def test_a_time_is_found_in_a_sentence(text: str, meant: float, rest: str) -> None:
    """With the small words before it."""
    assert find_moment_ahead(text, now=NOW, zone=ZONE) == (meant, rest)


@pytest.mark.parametrize("text", ["remind me soon to call mum", "remind me about the second act", "an die Pizza", ""])
def test_other_sentences_name_no_time(text: str) -> None:
    """Also those with words that are short for a day."""
    assert find_moment_ahead(text, now=NOW, zone=ZONE) is None


def test_a_day_begins_at_midnight_where_people_are_and_keeps_its_hours_when_clocks_change() -> None:
    """On 25 October 2026 the clocks in Berlin go back."""
    before = datetime(2026, 10, 24, 23, 30, tzinfo=ZONE)
    tomorrow = parse_moment_ahead("tomorrow at 8", now=before.timestamp(), zone=ZONE)
    assert tomorrow == datetime(2026, 10, 25, 8, 0, tzinfo=ZONE).timestamp()
    span = parse_moment_ahead("in 24 hours", now=before.timestamp(), zone=ZONE)
    assert span == before.timestamp() + timedelta(hours=24).total_seconds()


@given(st.text(max_size=120))
def test_any_text_names_a_time_or_none(text: str) -> None:
    """What people write is read or not, and never an error."""
    found = find_moment_ahead(text, now=NOW, zone=ZONE)
    assert found is None or isinstance(found.at, float)
