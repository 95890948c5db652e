"""Of who has most, the first is evicted."""

from __future__ import annotations

import pytest

from bot.web.fair_eviction import first_of_most


@pytest.mark.parametrize(
    ("owners", "key", "count"),
    [("a", 0, 1), ("abc", 0, 1), ("abb", 1, 2), ("abcbccb", 1, 3), ("aabb", 0, 2), ("abba", 0, 2)],
)
def test_the_first_of_who_has_most_is_evicted(owners: str, key: int, count: int) -> None:
    """Of several who have as many, whose key is the first."""
    assert first_of_most(dict(enumerate(owners))) == (key, count)
