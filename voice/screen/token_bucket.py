"""A token bucket that limits how many pictures a second somebody may send."""

from __future__ import annotations

from dataclasses import dataclass

# The page sends two a second; three leave room for a clock that runs fast, six for a network that stuttered.
FRAMES_PER_S = 3.0
BURST = 6.0


@dataclass(slots=True)
class TokenBucket:
    """Lets `rate` through a second, and `burst` at once after a rest. Times: monotonic seconds, handed in."""

    rate: float = FRAMES_PER_S
    burst: float = BURST
    _level: float = -1.0
    _at: float = 0.0

    def take(self, now: float) -> bool:
        """Return whether one more may pass now, and count it if so."""
        if self._level < 0:
            self._level, self._at = self.burst, now
        # A clock that is handed back doesn't take tokens away.
        self._level = min(self.burst, self._level + max(0.0, now - self._at) * self.rate)
        self._at = max(self._at, now)
        if self._level < 1:
            return False
        self._level -= 1
        return True
