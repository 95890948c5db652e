"""Which moment is meant, by the clock of the people."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.time_phrases import MomentUnknownError, moment

ZONE = timezone(timedelta(hours=2))
# Wednesday, half past midnight there.
NOW = datetime(2026, 3, 4, 0, 30, tzinfo=ZONE).timestamp()


def at(day: int, hour: int, minute: int = 0) -> float:
    """A moment of March 2026 there."""
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
        ("2026-03-01", at(1, 0)),
        ("2026-03-01T21:04", at(1, 21, 4)),
        ("2026-03-01T21:04+00:00", at(1, 23, 4)),
        ("2026-03-01t19:04z", at(1, 21, 4)),
        ("1760000000", 1_760_000_000.0),
    ],
)
def test_people_and_models_write_times_in_many_ways(text: str, meant: float) -> None:
    """A time of day is the last one that has been."""
    assert moment(text, now=NOW, zone=ZONE) == pytest.approx(meant)


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "m", "12", "9" * 400, "nan", "inf", "2026-13-01", "45 minutes to"]
)
def test_what_nobody_understands_is_told_with_examples(text: str) -> None:
    """The sentence says how to write it."""
    with pytest.raises(MomentUnknownError, match="21:04"):
        moment(text, now=NOW, zone=ZONE)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_sentence(text: str) -> None:
    """Nothing else comes out."""
    try:
        found = moment(text, now=NOW, zone=ZONE)
    except MomentUnknownError:
        return
    assert found == moment(text, now=NOW, zone=ZONE)
