"""Why a process may not serve its shards beside others of the same database. test_postgresql.py has the lock itself."""

from __future__ import annotations

import pytest

from bot.shards import ONLY_SHARD, Shards, parse_shards
from bot.store.dialects.postgresql_lock import refusal


@pytest.mark.parametrize(
    ("shards", "other", "told"),
    [
        (parse_shards("5/8"), parse_shards("0/6"), "divide the servers into 6 shards, and this one into 8"),
        (ONLY_SHARD, parse_shards("0/6"), "divide the servers into 6 shards, and this one into 1"),
        (parse_shards("5/8"), ONLY_SHARD, "do not divide the servers into shards, and this one divides them into 8"),
    ],
)
def test_bots_with_other_totals_are_told_both(shards: Shards, other: Shards, told: str) -> None:
    """The operator reads which total each has, also where one is not divided."""
    refused = refusal(shards, [other], "the database")
    assert refused is not None
    assert told in refused
