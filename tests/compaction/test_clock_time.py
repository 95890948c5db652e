"""A time of day is told in the zone of the place, with two digits each."""

from __future__ import annotations

from datetime import timedelta, timezone

from compaction.clock_time import format_clock_time
from tests.compaction.turn_store_contract import T0


def test_a_time_is_told_in_its_zone() -> None:
    """Without a zone it is UTC."""
    assert format_clock_time(T0) == "08:53"
    assert format_clock_time(T0, timezone(timedelta(hours=2))) == "10:53"
