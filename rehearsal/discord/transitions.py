"""Announced transitions: who is not ready yet, who is told of the execution, and which id comes next. Pure state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Transition ids are 16 bits; 0 is the one that executes at once.
INITIAL_TRANSITION = 0
_TRANSITION_IDS = 0xFFFE


@dataclass(slots=True)
class Transition:
    """One announced transition."""

    recipients: tuple[int, ...]
    waiting: set[int]


class Transitions:
    """The transitions of one group, by id, in order of announcement."""

    def __init__(self) -> None:
        self._announced: dict[int, Transition] = {}
        self._last_id = INITIAL_TRANSITION

    @property
    def ids(self) -> tuple[int, ...]:
        """Return what was announced and not executed."""
        return tuple(self._announced)

    def announce(self, recipients: Iterable[int]) -> int:
        """Begin a transition; return its id."""
        self._last_id = self._last_id % _TRANSITION_IDS + 1
        users = tuple(recipients)
        self._announced[self._last_id] = Transition(recipients=users, waiting=set(users))
        return self._last_id

    def ready(self, user_id: int, transition_id: int) -> None:
        """Note that a client is ready for one."""
        if transition_id in self._announced:
            self._announced[transition_id].waiting.discard(user_id)

    def gone(self, user_id: int) -> None:
        """Wait for that client no longer."""
        for transition in self._announced.values():
            transition.waiting.discard(user_id)

    def overdue(self, transition_id: int) -> None:
        """Wait for nobody any longer."""
        if transition_id in self._announced:
            self._announced[transition_id].waiting.clear()

    def call_off(self, transition_id: int) -> None:
        """Forget one: it will not be executed."""
        self._announced.pop(transition_id, None)

    def clear(self) -> None:
        """Forget all."""
        self._announced.clear()

    def take_ready(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return and forget those that nobody holds up: id and recipients."""
        ready = [(key, value.recipients) for key, value in self._announced.items() if not value.waiting]
        for key, _ in ready:
            del self._announced[key]
        return ready
