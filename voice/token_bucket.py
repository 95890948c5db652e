"""A token bucket: limits how often something may happen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class TokenBucket:
    """Allows `rate` items each second, and `burst` items at once after a pause. Callers pass in monotonic seconds."""

    rate: float
    burst: float
    _level: float = float("inf")
    _at: float = 0.0

    def take(self, now: float) -> bool:
        """Return whether one more item may pass now. If so, count it."""
        # A clock that goes backwards takes no tokens away.
        self._level = min(self.burst, self._level + max(0.0, now - self._at) * self.rate)
        self._at = max(self._at, now)
        if self._level < 1:
            return False
        self._level -= 1
        return True
