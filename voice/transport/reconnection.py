"""Decides how long to wait before the next attempt to connect. Pure.

Discord's servers get time to recover from a failure that lasts, and a failure that is over costs nobody a long silence.
"""

from __future__ import annotations

import random

from voice.errors import VoiceConnectionError
from voice.retry_pause import retry_pause_s

# The channel or its call ended, somebody removed or moved the bot, or the voice server changes (4014, 4022). The main
# gateway says which of them it is.
DISCONNECTED = 4014
CALL_ENDED = 4022
SENT_AWAY = frozenset({DISCONNECTED, CALL_ENDED})
RATE_LIMITED = 4021
# The voice server crashed. This is the only code after which discord.py resumes.
SERVER_CRASHED = 4015
# 1001 (server going away) and 1006 (connection lost): the server keeps the session for a while.
RESUMABLE = frozenset({1001, 1006, SERVER_CRASHED})

# Retrying does not help with these.
_FATAL = {
    4004: (
        "Discord did not accept my connection (4004). Use /join again. If that does not help, Discord has a problem."
    ),
    4011: "Discord does not know the voice server (4011). Change the region of the voice channel.",
    4012: "Discord does not accept my way of speaking (4012). The owner of this bot must update Roomtone.",
    4016: "Discord does not accept my encryption (4016). The owner of this bot must update Roomtone.",
    4017: (
        "Discord wants end-to-end encryption, which I do not have (4017). The owner of this bot must "
        "install the package davey."
    ),
    RATE_LIMITED: "Discord says that I join too often (4021). Wait some minutes.",
    CALL_ENDED: "The channel or its call has ended (4022).",
}


def fatal_reason(code: int | None) -> VoiceConnectionError | None:
    """Return the error with the remedy if retrying after `code` is useless, else None."""
    return None if code is None or code not in _FATAL else VoiceConnectionError(_FATAL[code], retryable=False)


FIRST_PAUSE_S = 0.25
# People in the channel wait for the bot, so that no pause is longer, even after an hour.
LONGEST_PAUSE_S = 10.0
# A connection that held for so long was sound: what ends it is a new failure. It also has to outlast a server that
# accepts a client and throws it out at once.
HEALTHY_S = 3.0


class ReconnectPauses:
    """The pauses of one connection: from the smallest, twice as long each time, and from the smallest again after some
    seconds of health.

    `luck`: of a test, which knows its numbers. Each pause is shortened at random by up to half, so that all rooms of a
    server that failed do not come back at the same moment.
    """

    def __init__(self, luck: random.Random | None = None) -> None:
        self._luck = luck or random.Random()  # noqa: S311 - nobody gains by guessing a pause
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
        return (LONGEST_PAUSE_S if close_code == RATE_LIMITED else pause_s) * (1 - self._luck.random() / 2)
