"""Whoever has most places gives the first of them up."""

from __future__ import annotations

import pytest

from bot.web.fair_places import first_of_most


@pytest.mark.parametrize(
    ("people", "place", "count"),
    [("a", 0, 1), ("abc", 0, 1), ("abb", 1, 2), ("abcbccb", 1, 3), ("aabb", 0, 2), ("abba", 0, 2)],
)
def test_the_first_place_of_who_has_most_is_given_up(people: str, place: int, count: int) -> None:
    """Of several who have as many, whose place is the first."""
    assert first_of_most(dict(enumerate(people))) == (place, count)
