"""Who gives a place up when all are taken: who has most of them, so that a few people cannot keep others out. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

PlaceT = TypeVar("PlaceT")


def first_of_most(places: Mapping[PlaceT, Hashable]) -> tuple[PlaceT, int]:
    """Return the first place of the person who has most of them, and how many those are. `places`: each with its
    person; one at least. Of people who have as many, whose place is the first counts.
    """
    counts = Counter(places.values())
    most = max(counts.values())
    return next((place, most) for place, person in places.items() if counts[person] == most)
