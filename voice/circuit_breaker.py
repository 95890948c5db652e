"""A circuit breaker: it stops calls to a service that keeps failing, and later allows one trial call.

Pure: callers pass the times in, as monotonic seconds. Libraries (purgatory, aiobreaker, pybreaker) read the clock
themselves and wrap the call, which does not suit streams that fail halfway.
"""

from __future__ import annotations

from dataclasses import dataclass

from voice.retry_pause import retry_pause_s

# One failure may be an accident. After two in a row nobody should have to wait for a third.
FAILURE_THRESHOLD = 2
OPEN_S = 60.0
# While a trial call is running, all other calls are refused. A trial that never reports its outcome blocks them for
# this many seconds at most.
TRIAL_S = 20.0


@dataclass(frozen=True, slots=True)
class Outage:
    """A service that is currently not called, or a missing part of the program.

    `since`: when the first of the failures in a row happened. `retry_at`: when the service is tried again; None if the
    next call tries it, or if it is never tried again. Both are monotonic seconds. `problem`: the error,
    a plain sentence with the remedy.
    """

    since: float
    retry_at: float | None
    problem: Exception


class CircuitBreaker:
    """Counts one service's failures in a row. Not thread-safe.

    `is_closed`: whether all calls are allowed. `on_trial`: whether the call that was admitted last is a trial whose
    outcome is not known. `failures`: since the last success. `problem`: the last failure, or None after a success.

    The breaker opens for `open_s` seconds after `failure_threshold` failures in a row. Each failed trial doubles the
    time, up to `longest_open_s` (by default the time does not grow).
    """

    def __init__(
        self,
        *,
        failure_threshold: int = FAILURE_THRESHOLD,
        open_s: float = OPEN_S,
        longest_open_s: float = 0.0,
    ) -> None:
        self._failure_threshold = failure_threshold
        self._open_s = open_s
        self._longest_open_s = max(open_s, longest_open_s)
        self._openings = 0
        self.is_closed, self.on_trial = True, False
        self.failures = 0
        self._since = 0.0
        self._retry_at = 0.0
        self.problem: Exception | None = None

    @property
    def outage(self) -> Outage | None:
        """Return the outage, or None while the breaker is closed. An outage lasts until a trial call succeeds."""
        if self.is_closed or self.problem is None:
            return None
        return Outage(self._since, self._retry_at, self.problem)

    @property
    def last_failures(self) -> Outage | None:
        """Return the failures in a row, also those that have not opened the breaker; None after a success."""
        return None if self.problem is None else Outage(self._since, None, self.problem)

    def would_admit(self, now: float) -> bool:
        """Return what `admits` would, without giving anybody the trial."""
        return self.is_closed or now >= self._retry_at

    def admits(self, now: float) -> bool:
        """Return whether to make a call now. When the open time is over, one caller gets True and makes the trial."""
        admitted = self.would_admit(now)
        if admitted and not self.is_closed:
            self.on_trial, self._retry_at = True, now + TRIAL_S
        return admitted

    def abandon_trial(self, now: float) -> None:
        """Take note that nobody will know how the trial call ends: the next caller makes another one."""
        if self.on_trial:
            self.on_trial, self._retry_at = False, now

    def record_success(self) -> None:
        """Close the breaker and forget the failures."""
        self.is_closed, self.on_trial = True, False
        self.failures, self.problem = 0, None
        self._openings = 0

    def record_failure(self, now: float, problem: Exception, *, permanent: bool = False) -> float:
        """Count a failure. Return for how many seconds the breaker is now open, or 0 if it stays closed.

        `problem`: its message is a plain sentence with the remedy. `permanent`: a retry cannot help, so the breaker
        opens at once.
        """
        if not self.failures:
            self._since = now
        self.failures += 1
        self.problem = problem
        if self.is_closed and self.failures < self._failure_threshold and not permanent:
            return 0.0
        self._openings += 1
        open_s = retry_pause_s(self._openings, first_s=self._open_s, longest_s=self._longest_open_s)
        self.is_closed, self.on_trial = False, False
        self._retry_at = now + open_s
        return open_s
