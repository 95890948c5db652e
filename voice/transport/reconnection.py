"""Decides how long to wait before the next attempt to connect. Pure.

Discord's servers get time to recover from a failure that lasts, and a failure that is over costs nobody a long silence.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from voice.retry_pause import retry_pause_s
from voice.transport.close_codes import RATE_LIMITED

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_PAUSE_S = 0.25
# People in the channel wait for the bot, so that no pause is longer, even after an hour.
LONGEST_PAUSE_S = 10.0
# A connection that held for so long was sound: what ends it is a new failure. It also has to outlast a server that
# accepts a client and throws it out at once.
HEALTHY_S = 3.0


class ReconnectPauses:
    """The pauses of one link: from the smallest, twice as long each time, and from the smallest again after some
    seconds of health.

    `share`: returns a random number from 0 to 1. Each pause is shortened by up to half, so that all rooms of a server
    that failed do not come back at the same moment.
    """

    def __init__(self, share: Callable[[], float] = random.random) -> None:
        self._share = share
        self._attempts = 0
        self._up_since: float | None = None

    def connected(self, now: float) -> None:
        """Note that the connection is up. `now`: monotonic seconds."""
        self._up_since = now

    def lost(self, now: float) -> None:
        """Note that the connection is down."""
        if self._up_since is not None and now - self._up_since >= HEALTHY_S:
            self._attempts = 0
        self._up_since = None

    def next_s(self, *, close_code: int | None = None) -> float:
        """Return the seconds to wait before the next attempt. `close_code`: with which the voice server closed."""
        self._attempts += 1
        pause_s = retry_pause_s(self._attempts, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)
        return (LONGEST_PAUSE_S if close_code == RATE_LIMITED else pause_s) * (1 - self._share() / 2)
