"""The key changes of a call that are announced and not executed yet."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

_log = structlog.get_logger()

# A key change is executed when the slowest member is ready, within two seconds. One still pending after this time was
# cancelled.
_TRANSITION_S = 10.0


class PendingTransitions(dict[int, int]):
    """Announced key changes (DAVE transitions) that are not executed yet: id to protocol version.

    The voice server may cancel one silently, and discord.py removes only executed ones.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._announced: dict[int, float] = {}

    def __setitem__(self, transition_id: int, version: int) -> None:
        super().__setitem__(transition_id, version)
        announced = {known: at for known, at in self._announced.items() if known in self}
        self._announced = {**announced, transition_id: self._clock()}

    def pop(self, transition_id: int) -> int:  # type: ignore[override]
        """Return the version of a transition that is executed now."""
        version = super().pop(transition_id)
        duration_ms = round(1000 * (self._clock() - self._announced[transition_id]))
        _log.info("dave_transition_executed", protocol_version=version, duration_ms=duration_ms)
        return version

    @property
    def under_way(self) -> bool:
        """Whether a transition is recent enough to be executed still."""
        now = self._clock()
        return any(now < self._announced[transition_id] + _TRANSITION_S for transition_id in self)
