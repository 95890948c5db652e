"""Whether one room's speech-to-speech session is in use, given up, or on trial. Pure.

A session is given up after too many failures in a row, or after one that no retry can mend, such as a refused key. The
second is for good. After the first, each later connection is a trial: the session is in use again as soon as the server
accepts it. `failure_budget` counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.errors import RealtimeError
    from voice.realtime.failure_budget import FailureBudget

# Seconds to wait before the next attempt, after the second, third … failure in a row. After the first there is no wait.
BACKOFF_S = (0.5, 1.0, 2.0, 5.0)


class Availability:
    """The availability of one session, which starts in use. A failure is not counted after it was given up."""

    def __init__(self, budget: FailureBudget) -> None:
        self._budget = budget
        self._given_up: RealtimeError | None = None
        self._on_trial = False

    @property
    def given_up(self) -> RealtimeError | None:
        """Return why the session was given up, or None while it is in use."""
        return self._given_up

    @property
    def ended(self) -> bool:
        """Return whether it was given up for good, because no retry can help."""
        return self._given_up is not None and not self._given_up.retryable

    @property
    def on_trial(self) -> bool:
        """Return whether there is a connection after the session was given up."""
        return self._on_trial

    @property
    def failures(self) -> int:
        """Return how many failures have not been reset by a success."""
        return self._budget.failures

    @property
    def retry_delay_s(self) -> float:
        """Return how many seconds to wait before the next trial."""
        return self._budget.retry_delay_s

    @property
    def backoff_s(self) -> float:
        """Return how many seconds to wait before the next connection while the session is in use."""
        return 0.0 if self.failures <= 1 else BACKOFF_S[min(self.failures - 2, len(BACKOFF_S) - 1)]

    def begin_connection(self) -> None:
        """Begin a connection; after the session was given up it is a trial."""
        self._on_trial = self._given_up is not None

    def end_connection(self) -> None:
        """End the connection, and with it the trial."""
        self._on_trial = False

    def record_recovery(self) -> bool:
        """Record that the server has accepted a connection. Returns whether it was a trial, which has succeeded."""
        if not self._on_trial:
            return False
        self._on_trial, self._given_up = False, None
        self._budget.record_recovery()
        return True

    def record_connection(self) -> None:
        """Record that a connection has lasted long enough to count as good."""
        self._budget.record_connection()

    def record_transcription(self) -> None:
        """Record that an input was transcribed, or reported as impossible to transcribe."""
        self._budget.record_transcription()

    def record_reply(self) -> None:
        """Record a complete reply."""
        self._budget.record_reply()

    def record_connection_failure(self, error: RealtimeError) -> bool:
        """Count a connection that could not be opened or broke soon. Returns whether the session is given up now."""
        return self._count(self._budget.record_connection_failure, error)

    def record_reply_failure(self, error: RealtimeError) -> bool:
        """Count a reply that did not come. Returns whether the session is given up now."""
        return self._count(self._budget.record_reply_failure, error)

    def record_transcription_failure(self, error: RealtimeError) -> bool:
        """Count an input that was not transcribed in time. Returns whether the session is given up now."""
        return self._count(self._budget.record_transcription_failure, error)

    def give_up(self, error: RealtimeError) -> None:
        """Give the session up, or give it up for another reason than before."""
        self._given_up = error

    def _count(self, count: Callable[[], None], error: RealtimeError) -> bool:
        if self._given_up is not None:
            return False
        count()
        if error.retryable and not self._budget.exhausted:
            return False
        self._given_up = error
        return True
