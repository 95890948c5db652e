"""Chooses whose connection or login ends when there are too many: one of whoever has the most. Pure.

So a few people cannot keep others out.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

KeyT = TypeVar("KeyT")


def first_of_most(owners: Mapping[KeyT, Hashable]) -> tuple[KeyT, int]:
    """Return the key to evict, which is the first of the owner who has most keys, and how many that owner has.

    `owners`: the owner of each key, oldest key first; not empty. Of owners who have as many, the one with the oldest
    key counts.
    """
    counts = Counter(owners.values())
    most = max(counts.values())
    return next((key, most) for key, owner in owners.items() if counts[owner] == most)
