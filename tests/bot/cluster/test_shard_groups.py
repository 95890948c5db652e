"""Every shard is in one group, and a group's name says which shards it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cluster.ray_access import ClusterError
from bot.cluster.shard_groups import divided, name_of_next, shards_of


@given(st.integers(1, 200), st.data())
def test_groups_have_every_shard_once_and_are_even(total: int, data: st.DataObject) -> None:
    """They differ by one shard at most, and are numbered in order."""
    count = data.draw(st.integers(1, total))
    groups = divided(total, count)
    assert [group.number for group in groups] == list(range(count))
    assert [shard for group in groups for shard in group.shards.ids] == list(range(total))
    sizes = [len(group.shards.ids) for group in groups]
    assert max(sizes) - min(sizes) <= 1
    assert [shards_of(group.name) for group in groups] == [group.shards for group in groups]


@pytest.mark.parametrize(("total", "groups"), [(4, 5), (0, 1), (4, 0), (20_000, 2)])
def test_what_cannot_be_divided_is_refused(total: int, groups: int) -> None:
    """No process has nothing to do."""
    with pytest.raises(ClusterError, match="groups"):
        divided(total, groups)


def test_a_group_that_moves_has_two_names_in_turn() -> None:
    """Both say which shards it has."""
    [group] = divided(4, 1)
    following = name_of_next(group.name)
    assert shards_of(following) == group.shards
    assert [following == group.name, name_of_next(following) == group.name] == [False, True]


def test_other_actors_keep_no_shards() -> None:
    """Ray Serve has named actors too."""
    assert shards_of("SERVE_CONTROLLER_ACTOR") is None
