"""How moments are said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.brain.wording import ago, earlier


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (49, "just now"),
        (60, "about a minute ago"),
        (9 * 60, "about nine minutes ago"),
        (23 * 60, "about twenty-five minutes ago"),
        (41 * 60, "about forty minutes ago"),
        (57 * 60, "about fifty-five minutes ago"),
        (62 * 60, "about an hour ago"),
        (91 * 60, "about an hour and a half ago"),
        (150 * 60, "about two and a half hours ago"),
        (182 * 60, "about three hours ago"),
    ],
)
def test_how_long_ago(seconds: float, words: str) -> None:
    """Precise when it is fresh, round when it is not, always in words that a voice can say."""
    assert ago(seconds) == words


def at(day: int, hour: int, minute: int) -> float:
    """Return an epoch time in November 2026."""
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [
        (at(20, 19, 2), at(20, 19, 8), "Earlier this evening, between 19:02 and 19:08"),
        (at(20, 14, 2), at(20, 14, 2), "Earlier this afternoon, at 14:02"),
        (at(20, 9, 0), at(20, 9, 30), "Earlier this morning, between 09:00 and 09:30"),
        (at(19, 23, 50), at(20, 0, 10), "Earlier yesterday, between 23:50 and 00:10"),
        (at(11, 9, 0), at(11, 9, 30), "Earlier on 11 November, between 09:00 and 09:30"),
    ],
)
def test_a_time_range(since: float, until: float, words: str) -> None:
    """The part of the day and the clock, as the listener's own day has them."""
    assert earlier(since, until, now=at(20, 20, 0), zone=UTC) == words
