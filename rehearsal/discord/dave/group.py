"""The MLS group of a voice channel as the voice gateway sees it, the announced transitions, and what the delivery
service asks its channel to do: messages to clients, and timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias


class DaveOpcode(IntEnum):
    """The voice gateway's DAVE opcodes (protocol.md, "Voice Gateway Opcodes")."""

    PREPARE_TRANSITION = 21
    EXECUTE_TRANSITION = 22
    READY_FOR_TRANSITION = 23
    PREPARE_EPOCH = 24
    EXTERNAL_SENDER = 25
    KEY_PACKAGE = 26
    PROPOSALS = 27
    COMMIT_WELCOME = 28
    ANNOUNCE_COMMIT = 29
    WELCOME = 30
    INVALID_COMMIT_WELCOME = 31


@dataclass(frozen=True, slots=True)
class SendBinary:
    """Send a binary message; the connection adds its sequence number."""

    user_id: int
    opcode: int
    body: bytes


@dataclass(frozen=True, slots=True)
class SendJson:
    """Send a JSON message."""

    user_id: int
    opcode: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StartTimer:
    """After `delay_s`, call `then`, and do what it returns."""

    delay_s: float
    then: Callable[[], list[DeliveryEffect]]


DeliveryEffect: TypeAlias = SendBinary | SendJson | StartTimer


# Transition ids have 16 bits. A transition with the id 0 is executed at once.
INITIAL_TRANSITION = 0
_TRANSITION_IDS = 0xFFFE


@dataclass(frozen=True, slots=True)
class Addition:
    """Add a user with this key package."""

    user_id: int
    key_package: bytes


@dataclass(frozen=True, slots=True)
class Removal:
    """Remove a leaf."""

    leaf: int


GroupChange: TypeAlias = Addition | Removal


@dataclass(slots=True)
class MlsGroup:
    """One MLS group. In epoch 0 nobody has committed yet."""

    epoch: int = 0
    leaves: dict[int, int] = field(default_factory=dict)  # leaf index -> user id
    stale: set[int] = field(default_factory=set)  # leaves to remove
    # The proposals of this epoch that each client received and that were not revoked: user id -> reference -> change.
    outstanding: dict[int, dict[bytes, GroupChange]] = field(default_factory=dict)

    def members(self) -> dict[int, int]:
        """Return user id -> leaf of the members. Members hold the group's keys and may commit."""
        return {user: leaf for leaf, user in self.leaves.items() if leaf not in self.stale}

    def apply(self, changes: list[GroupChange]) -> tuple[list[int], list[int]]:
        """Apply a commit's changes, and return the users who stayed and the users who were added.

        Removals free their leaves before additions take the leftmost blank leaves (RFC 9420 sections 12.3 and 7.7).
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
        """Return the users whose addition was proposed to `recipient`."""
        return {
            change.user_id for change in self.outstanding.get(recipient, {}).values() if isinstance(change, Addition)
        }

    def _leftmost_blank(self) -> int:
        leaf = 0
        while leaf in self.leaves:
            leaf += 1
        return leaf


@dataclass(slots=True)
class PendingTransition:
    """One transition that was announced and not executed yet."""

    recipients: tuple[int, ...]
    waiting: set[int]


class Transitions:
    """The announced transitions of one group, by id, in the order in which they were announced."""

    def __init__(self) -> None:
        self._announced: dict[int, PendingTransition] = {}
        self._last_id = INITIAL_TRANSITION

    @property
    def ids(self) -> tuple[int, ...]:
        """Return the ids of the announced transitions that were not executed yet."""
        return tuple(self._announced)

    def announce(self, recipients: Iterable[int]) -> int:
        """Start a transition; return its id."""
        self._last_id = self._last_id % _TRANSITION_IDS + 1
        users = tuple(recipients)
        self._announced[self._last_id] = PendingTransition(recipients=users, waiting=set(users))
        return self._last_id

    def ready(self, user_id: int, transition_id: int) -> None:
        if transition_id in self._announced:
            self._announced[transition_id].waiting.discard(user_id)

    def gone(self, user_id: int) -> None:
        """Stop waiting for a client in all transitions."""
        for transition in self._announced.values():
            transition.waiting.discard(user_id)

    def overdue(self, transition_id: int) -> None:
        """Stop waiting for all clients in one transition."""
        if transition_id in self._announced:
            self._announced[transition_id].waiting.clear()

    def call_off(self, transition_id: int) -> None:
        """Cancel a transition: it will not be executed."""
        self._announced.pop(transition_id, None)

    def clear(self) -> None:
        self._announced.clear()

    def take_ready(self) -> list[tuple[int, tuple[int, ...]]]:
        """Remove the transitions that wait for no client, and return the id and the recipients of each."""
        ready = [(key, value.recipients) for key, value in self._announced.items() if not value.waiting]
        for key, _ in ready:
            del self._announced[key]
        return ready
