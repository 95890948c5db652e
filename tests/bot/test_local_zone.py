"""This machine's time zone has the offset of each moment's season."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from bot.local_zone import LocalZone


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalZone]:
    """The time zone of a machine in Berlin."""
    with monkeypatch.context() as there:
        there.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        yield LocalZone()
    time.tzset()


@pytest.mark.parametrize(
    ("utc", "there"),
    [
        ("2026-10-24T18:00", "2026-10-24T20:00:00+02:00"),
        ("2026-10-25T00:30", "2026-10-25T02:30:00+02:00"),
        ("2026-10-25T01:30", "2026-10-25T02:30:00+01:00"),
        ("2026-10-25T19:00", "2026-10-25T20:00:00+01:00"),
        ("2027-03-28T00:59", "2027-03-28T01:59:00+01:00"),
        ("2027-03-28T01:00", "2027-03-28T03:00:00+02:00"),
    ],
)
def test_each_moment_has_the_offset_of_its_season(berlin: LocalZone, utc: str, there: str) -> None:
    """A bot that was started in summer tells the right times in winter, and of the summer too."""
    at = datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp()
    assert datetime.fromtimestamp(at, berlin).isoformat() == there
    assert datetime.fromtimestamp(at, berlin).timestamp() == at
