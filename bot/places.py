"""Places that people share, of which each may take only some: whatever one does, others have places left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

S = TypeVar("S", bound=str)


@dataclass(frozen=True, slots=True)
class Places(Generic[S]):
    """`most` places, `of_one` for each person. `full`, `full_for_one`: what to say to who gets none."""

    most: int
    of_one: int
    full: S
    full_for_one: S

    def refusal(self, taken: Sequence[int | None], person_id: int | None) -> S | None:
        """Return why a person gets no place; None: they get one. `taken`: whose the places are that are taken."""
        if len(taken) >= self.most:
            return self.full
        return self.full_for_one if taken.count(person_id) >= self.of_one else None
