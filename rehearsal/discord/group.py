"""The encryption group as the delivery service sees it: an epoch, leaves, what was proposed to whom. Pure state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Addition:
    """Somebody is to be added, under this key package."""

    user_id: int
    key_package: bytes


@dataclass(frozen=True, slots=True)
class Removal:
    """A leaf is to be removed."""

    leaf: int


Change: TypeAlias = Addition | Removal


@dataclass(slots=True)
class Group:
    """One MLS group; epoch 0 is a group that nobody has committed yet."""

    epoch: int = 0
    leaves: dict[int, int] = field(default_factory=dict)  # leaf index -> user id
    stale: set[int] = field(default_factory=set)  # leaves that must go
    # Unrevoked proposals of this epoch as each recipient has them: user id -> reference -> change.
    outstanding: dict[int, dict[bytes, Change]] = field(default_factory=dict)

    def members(self) -> dict[int, int]:
        """Return user id -> leaf of those who hold the group's keys and may commit."""
        return {user: leaf for leaf, user in self.leaves.items() if leaf not in self.stale}

    def apply(self, changes: list[Change]) -> tuple[list[int], list[int]]:
        """Carry out a commit's changes, in its order; return who stayed and who was added.

        Removals free their leaves before additions take the leftmost blank ones (RFC 9420 sections 12.3 and 7.7).
        """
        for change in changes:
            if isinstance(change, Removal):
                self.leaves.pop(change.leaf, None)
                self.stale.discard(change.leaf)
        stayed = list(self.members())
        added = [change.user_id for change in changes if isinstance(change, Addition)]
        for user in added:
            self.leaves[self._leftmost_blank()] = user
        return stayed, added

    def proposed_additions(self, recipient: int) -> set[int]:
        """Return whose additions `recipient` has."""
        return {
            change.user_id for change in self.outstanding.get(recipient, {}).values() if isinstance(change, Addition)
        }

    def _leftmost_blank(self) -> int:
        leaf = 0
        while leaf in self.leaves:
            leaf += 1
        return leaf
