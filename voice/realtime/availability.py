"""Whether one room's speech-to-speech session is in use, given up, or on trial. Pure.

A session is given up after too many failures in a row, or after one that no retry can mend, such as a refused key. The
second is for good. After the first, each later connection is a trial: the session is in use again as soon as the server
accepts it, and one failure before its first reply gives it up again.

Failures of all kinds are counted together, but a success resets only its own kind: a service that takes every
connection and transcribes every word but never replies has failed, and so has one that replies but never transcribes.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from voice.errors import RealtimeError

# Seconds to wait before the next attempt, from the second failure in a row on. After the first there is no wait.
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0
# A service that was given up is tried at least twice an hour, however often it fails.
MAX_RETRY_DELAY_S: Final = 1_800.0


class RealtimeWork(StrEnum):
    """What a service does, and may fail at: hold a connection, transcribe an input in time, reply."""

    CONNECTION = "connection"
    TRANSCRIPTION = "transcription"
    REPLY = "reply"


class Availability:
    """The availability of one session, which starts in use. A failure is not counted after it was given up.

    `failures_in_a_row`: the limit. `retry_delay_s`: the seconds until the service is tried again, doubled each time
    that it recovers but fails before its first reply. `given_up`: why it was given up, or None while it is in use.
    `on_trial`: whether there is a connection after it was given up.
    """

    def __init__(self, *, failures_in_a_row: int, retry_delay_s: float) -> None:
        self.given_up: RealtimeError | None = None
        self.on_trial = False
        self._limit = failures_in_a_row
        self._first_delay_s = retry_delay_s
        self._failures: Counter[RealtimeWork] = Counter()
        self._on_probation = False
        self._failed_recoveries = 0

    @property
    def ended(self) -> bool:
        """Return whether it was given up for good, because no retry can help."""
        return self.given_up is not None and not self.given_up.retryable

    @property
    def failures(self) -> int:
        """Return how many failures have not been reset by a success."""
        return self._failures.total()

    @property
    def retry_delay_s(self) -> float:
        """Return how many seconds to wait before the next trial."""
        longest_s = max(MAX_RETRY_DELAY_S, self._first_delay_s)
        return retry_pause_s(self._failed_recoveries + 1, first_s=self._first_delay_s, longest_s=longest_s)

    @property
    def backoff_s(self) -> float:
        """Return how many seconds to wait before the next connection while the session is in use."""
        if self.failures <= 1:
            return 0.0
        return retry_pause_s(self.failures - 1, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)

    def record_recovery(self) -> bool:
        """Record that the server has accepted a connection. Returns whether it was a trial, which has succeeded."""
        if not self.on_trial:
            return False
        self.on_trial, self.given_up = False, None
        self._failed_recoveries += self._on_probation
        self._failures.clear()
        self._on_probation = True
        return True

    def record_success(self, work: RealtimeWork) -> None:
        """Record a connection that has lasted, an input that was transcribed (or reported as impossible to transcribe),
        or a complete reply.
        """
        # A transcription and a reply come over a connection, which works then.
        for shown in {work, RealtimeWork.CONNECTION}:
            del self._failures[shown]
        if work is RealtimeWork.REPLY:
            self._failed_recoveries, self._on_probation = 0, False

    def record_failure(self, work: RealtimeWork, error: RealtimeError) -> bool:
        """Count a failure. Returns whether the session is given up now."""
        if self.given_up is not None:
            return False
        self._failures[work] += 1
        if error.retryable and self.failures < (1 if self._on_probation else self._limit):
            return False
        self.given_up = error
        return True
