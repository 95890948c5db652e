"""The prompt part of a turn is cached, and made again when the turn, the time zone or the counting function changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta, timezone

from compaction.context.turn_text import FORGOTTEN, TurnPartCache
from tests.compaction.turn_store_contract import turn

SUMMER = timezone(timedelta(hours=1))


def test_a_part_is_made_once() -> None:
    """The same turn, time zone and counting function give the same part object. If one of them changes, another part is
    made.
    """
    told = TurnPartCache()
    said = turn(7)
    first = told.part(said, UTC, len)
    assert told.part(said, UTC, len) is first
    assert told.part(said, SUMMER, len).content != first.content
    assert told.part(said, UTC, lambda text: 1).tokens == 7
    assert told.part(said, UTC, len) == first


def test_a_forgotten_turn_is_told_anew() -> None:
    """A forgotten turn is formatted again, so the cache does not keep its words."""
    told = TurnPartCache()
    said = turn(7)
    told.part(said)
    assert FORGOTTEN in told.part(replace(said, tombstone=True, parts=())).content
