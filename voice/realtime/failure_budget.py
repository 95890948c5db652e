"""Count failures in a row of speech-to-speech: when to give it up, and when to try it again. Pure.

Lost connections, failed replies and missing transcriptions are counted together, but a success resets only its own kind
(so `voice.circuit_breaker` does not fit): a service that takes every connection and transcribes every word but never
replies has failed, and so has one that replies but never transcribes.
"""

from __future__ import annotations

from typing import Final

# However often it fails, it is tried twice an hour.
MAX_RETRY_DELAY_S: Final = 1_800.0


class FailureBudget:
    """One session's count. `failures_in_a_row`: the limit. `retry_delay_s`: the time until it is tried again, doubled
    after each recovery that fails before a first reply."""

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
        """Return how many failures are not forgiven yet."""
        return self._connection_failures + self._reply_failures + self._transcription_failures

    @property
    def exhausted(self) -> bool:
        """Return whether to give up. After a recovery the first failure is enough until there was a reply."""
        return self.failures >= (1 if self._on_probation else self._limit)

    @property
    def retry_delay_s(self) -> float:
        """Return how many seconds to wait before the next try."""
        return min(self._first_delay_s * float(2**self._failed_recoveries), max(MAX_RETRY_DELAY_S, self._first_delay_s))

    def record_connection_failure(self) -> None:
        """Count a connection that could not be made, or broke soon."""
        self._connection_failures += 1

    def record_reply_failure(self) -> None:
        """Count a reply that did not come."""
        self._reply_failures += 1

    def record_transcription_failure(self) -> None:
        """Count an input that was not transcribed in time."""
        self._transcription_failures += 1

    def record_connection(self) -> None:
        """A connection has lasted long enough to count as good."""
        self._connection_failures = 0

    def record_transcription(self) -> None:
        """An input was transcribed, or reported as impossible to transcribe: the connection works too."""
        self._connection_failures = self._transcription_failures = 0

    def record_reply(self) -> None:
        """A reply was complete. Transcription failures stay."""
        self._connection_failures = self._reply_failures = self._failed_recoveries = 0
        self._on_probation = False

    def record_recovery(self) -> None:
        """The service was given up and accepts connections again."""
        self._failed_recoveries += self._on_probation
        self._connection_failures = self._reply_failures = self._transcription_failures = 0
        self._on_probation = True
