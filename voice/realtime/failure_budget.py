"""Counts speech-to-speech failures in a row, and decides when to give the service up and when to try it again. Pure.

Lost connections, failed replies and missing transcriptions are counted together, but a success resets only its own
kind. A service that takes every connection and transcribes every word but never replies has failed, and so has one that
replies but never transcribes. Therefore `voice.circuit_breaker` does not fit.
"""

from __future__ import annotations

from typing import Final

from voice.retry_pause import retry_pause_s

# The service is tried at least twice an hour, however often it fails.
MAX_RETRY_DELAY_S: Final = 1_800.0


class FailureBudget:
    """One session's count. `failures_in_a_row`: the limit. `retry_delay_s`: the seconds until the service is tried
    again, doubled each time that the service recovers but fails before its first reply.
    """

    def __init__(self, *, failures_in_a_row: int, retry_delay_s: float) -> None:
        self._limit = failures_in_a_row
        self._first_delay_s = retry_delay_s
        self._connection_failures = 0
        self._reply_failures = 0
        self._transcription_failures = 0
        self._on_probation = False
        self._failed_recoveries = 0

    @property
    def failures(self) -> int:
        """Return how many failures have not been reset by a success."""
        return self._connection_failures + self._reply_failures + self._transcription_failures

    @property
    def exhausted(self) -> bool:
        """Return whether to give up. Between a recovery and the first reply after it, one failure is enough."""
        return self.failures >= (1 if self._on_probation else self._limit)

    @property
    def retry_delay_s(self) -> float:
        """Return how many seconds to wait before the next try."""
        longest_s = max(MAX_RETRY_DELAY_S, self._first_delay_s)
        return retry_pause_s(self._failed_recoveries + 1, first_s=self._first_delay_s, longest_s=longest_s)

    def record_connection_failure(self) -> None:
        """Count a connection that could not be opened or broke soon."""
        self._connection_failures += 1

    def record_reply_failure(self) -> None:
        """Count a reply that did not come."""
        self._reply_failures += 1

    def record_transcription_failure(self) -> None:
        """Count an input that was not transcribed in time."""
        self._transcription_failures += 1

    def record_connection(self) -> None:
        """Record that a connection has lasted long enough to count as good."""
        self._connection_failures = 0

    def record_transcription(self) -> None:
        """Record that an input was transcribed, or reported as impossible to transcribe. This shows that the connection
        works too.
        """
        self._connection_failures = self._transcription_failures = 0

    def record_reply(self) -> None:
        """Record a complete reply. Transcription failures are not reset."""
        self._connection_failures = self._reply_failures = self._failed_recoveries = 0
        self._on_probation = False

    def record_recovery(self) -> None:
        """Record that the service accepts connections again after it was given up."""
        self._failed_recoveries += self._on_probation
        self._connection_failures = self._reply_failures = self._transcription_failures = 0
        self._on_probation = True
