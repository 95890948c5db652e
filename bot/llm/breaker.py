"""Whether a model that has failed lately is worth asking. Pure: times are handed in, monotonic seconds.

After a few failures in a row it rests; then one question tries it, and the rest is longer if that fails too. The same
idea lets the compactor's summariser rest (`compaction.folding.machine`), which has its own, because its folds can wait.
"""

from __future__ import annotations

from voice.rest import Resting

# One failure may be a hiccup. Two in a row, and a third person would wait in vain.
FAILURES = 2
FIRST_REST_S = 15.0
LONGEST_REST_S = 300.0
# While one question tries a rested model, the others go elsewhere; so long at most, should nothing come of it.
TRIAL_S = 20.0


class Breaker:
    """The state of one model. One owner; not thread-safe."""

    def __init__(self) -> None:
        self._failures = 0
        self._rests = 0
        self._closed_until = 0.0
        self._since = 0.0
        self._problem = ""

    @property
    def resting(self) -> Resting | None:
        """Return since when and why it is left alone, None if it is not; while one question tries it, it still is."""
        return Resting(self._since, self._closed_until, self._problem) if self._rests else None

    @property
    def well(self) -> bool:
        """Return whether nothing has failed since it last worked."""
        return self._failures == 0

    def admits(self, now: float) -> bool:
        """Return whether to ask it now. One that has rested admits one question at a time."""
        if now < self._closed_until:
            return False
        if self._rests:
            self._closed_until = now + TRIAL_S
        return True

    def worked(self) -> None:
        """Take note that it answered."""
        self._failures = self._rests = 0
        self._closed_until = 0.0

    def failed(self, now: float, *, for_good: bool = False, problem: str = "") -> float:
        """Take note that it failed, `for_good` where waiting does not help; return how long it rests, in seconds.

        `problem`: a plain sentence with the remedy.
        """
        if not self._failures:
            self._since = now
        self._failures += 1
        self._problem = problem
        if self._failures < FAILURES and not for_good and not self._rests:
            return 0.0
        rest_s = min(FIRST_REST_S * 2.0**self._rests, LONGEST_REST_S)
        self._rests += 1
        self._closed_until = now + rest_s
        return rest_s
