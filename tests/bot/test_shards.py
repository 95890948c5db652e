"""Which servers belong to which shards, and how the operator writes that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.shards import MOST_SHARDS, ONLY_SHARD, Shards, parse_shards, ranges, whole


@pytest.mark.parametrize(
    ("text", "ids", "total"),
    [
        ("0-3/16", (0, 1, 2, 3), 16),
        (" 5 / 16 ", (5,), 16),
        ("7,0-2/8", (0, 1, 2, 7), 8),
        ("0/1", (0,), 1),
    ],
)
def test_the_operators_choice_is_read(text: str, ids: tuple[int, ...], total: int) -> None:
    """A range, one shard, or several, of a total."""
    assert parse_shards(text) == Shards(ids, total)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "names no shards"),
        ("3", "names no shards"),
        ("a-b/4", "names no shards"),
        ("0-3", "names no shards"),
        ("²/4", "names no shards"),
        ("-1/4", "names no shards"),
        ("4/4", "0 to 3"),
        ("3-1/4", "among"),
        ("0-1,1/4", "twice"),
        ("0/0", "1 to"),
        ("0/99999", "1 to"),
    ],
)
def test_a_wrong_choice_is_told_in_a_sentence(text: str, problem: str) -> None:
    """The sentence says what is wrong."""
    with pytest.raises(ValueError, match=problem):
        parse_shards(text)


@given(st.sets(st.integers(0, 31), min_size=1), st.integers(1, 2**63 - 1))
def test_each_server_is_served_by_the_process_of_its_shard(ids: set[int], guild_id: int) -> None:
    """Of two processes that share all shards exactly one serves a server, and both agree which shard it has."""
    mine = Shards(tuple(sorted(ids)), 32)
    others = Shards(tuple(sorted(set(range(32)) - ids)), 32)
    assert mine.serves(guild_id) is not others.serves(guild_id)
    assert mine.of(guild_id) == others.of(guild_id) == (guild_id >> 22) % 32
    assert parse_shards(str(mine)) == mine


def test_without_a_choice_a_process_serves_every_server() -> None:
    """The only shard is the whole bot, and leads it."""
    assert whole(1) == ONLY_SHARD
    assert ONLY_SHARD.serves(1) and ONLY_SHARD.serves(2**60)  # noqa: PT018 - the same thing twice
    assert (ONLY_SHARD.is_divided, ONLY_SHARD.is_whole, ONLY_SHARD.leads) == (False, True, True)
    assert (whole(4).is_divided, whole(4).is_whole, Shards((1,), 4).leads) == (True, True, False)
    assert ranges([]) == ""
    assert str(whole(MOST_SHARDS)) == f"0-{MOST_SHARDS - 1}/{MOST_SHARDS}"
