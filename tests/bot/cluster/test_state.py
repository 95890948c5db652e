"""What `roomtone cluster status` tells of groups and of shards that nobody serves."""

from __future__ import annotations

import pytest

from bot.cluster.deployment import GroupState, unserved_lines
from bot.cluster.shard_groups import divided
from bot.cluster.shard_keeper import KeeperReport
from bot.shards import Shards, parse_shards, whole

(GROUP,) = divided(1, 1)


@pytest.mark.parametrize(
    ("served", "told"),
    [
        ([], "No process serves any shard."),
        ([Shards((0, 1), 4)], "Nobody serves 2-3 of 4 shards."),
        ([parse_shards("1-15/16")], "these take 5 s"),
        ([Shards((0,), 16)], "these take 75 s"),
    ],
)
def test_shards_that_nobody_serves_are_told(served: list[Shards], told: str) -> None:
    """With the time that Discord takes for them."""
    [line] = unserved_lines(served)
    assert told in line


def test_when_all_are_served_nothing_is_told() -> None:
    """Two processes are one set of locks in the database."""
    assert unserved_lines([whole(16)]) == []


def test_a_group_says_where_it_is_or_why_not() -> None:
    """A bot that does not run has said why."""
    running = KeeperReport(GROUP, 1.0, "id", "north", "10.0.0.2", 4711, 2, "on Discord")
    assert GroupState("shards 0/1", running).line() == "shards 0/1: on 10.0.0.2 (north), process 4711, started 2 times"
    ended = KeeperReport(GROUP, 1.0, "id", "north", "10.0.0.2", None, 1, "No token.")
    assert GroupState("shards 0/1", ended).line().endswith("It said: No token.")
    assert "waits for a machine" in GroupState("shards 0/1", None).line()
