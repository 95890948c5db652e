"""The prompt part of a turn is cached, and made again when the turn, the time zone or the counting function changes."""

from __future__ import annotations

from dataclasses import replace

from compaction.context.turn_text import FORGOTTEN, TurnPartCache
from tests.compaction.turn_store_contract import turn


def test_a_forgotten_turn_is_told_anew() -> None:
    """A forgotten turn is formatted again, so the cache does not keep its words."""
    told = TurnPartCache()
    said = turn(7)
    told.part(said)
    assert FORGOTTEN in told.part(replace(said, tombstone=True, parts=())).content
