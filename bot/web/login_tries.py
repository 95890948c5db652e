"""Limits how often people come back from Discord to log in. Pure.

Each try asks Discord, which bars a machine that sends too many invalid requests, and with it the bot. Anybody who
reaches the pages can try.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

PER_S: Final = 60.0
# A third of the 10,000 invalid requests in ten minutes that Discord allows an address (its page "Rate Limits").
# Far more than people need, because whoever uses it up keeps them out.
MAX_TRIES: Final = 300
# Of a household behind an address that a trusted proxy vouches for.
MAX_TRIES_OF_ONE_CLIENT: Final = 20


class LoginTries:
    """The tries of the last minute. Callers pass in monotonic seconds."""

    def __init__(self) -> None:
        self._tries: list[tuple[float, Hashable | None]] = []

    def allows(self, client: Hashable | None, now: float) -> bool:
        """Count a try, and return whether it may be made. `client`: whose it is, if that is known."""
        self._tries = [each for each in self._tries if now - each[0] < PER_S]
        of_client = sum(other == client for _, other in self._tries)
        if len(self._tries) >= MAX_TRIES or (client is not None and of_client >= MAX_TRIES_OF_ONE_CLIENT):
            return False
        self._tries.append((now, client))
        return True
