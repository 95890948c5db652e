"""When a room has been quiet for so long that the bot may speak first. Pure."""

from __future__ import annotations


class QuietTimer:
    """Decides when the room has been quiet for so long that the bot may make an unprompted remark. Pure.

    `after_s`: how long the quiet has to last; 0: never. `every_s`: least time between two remarks. Times are monotonic
    seconds.
    """

    def __init__(self, *, after_s: float, every_s: float, now: float) -> None:
        self._after_s = after_s
        self._every_s = every_s
        self._quiet_since = now
        self._used_at: float | None = None

    @property
    def enabled(self) -> bool:
        return self._after_s > 0

    def reset(self, at: float) -> None:
        """Restart the timer: somebody spoke until `at`, or came in."""
        self._quiet_since = max(self._quiet_since, at)

    def is_due(self, now: float) -> bool:
        """Return whether the room has been quiet for long enough, and the last remark is long enough ago."""
        waited = self._used_at is None or now - self._used_at >= self._every_s
        return self.enabled and waited and now - self._quiet_since >= self._after_s

    def use(self, now: float) -> None:
        """Note that the bot makes a remark at `now`: none is due for `every_s`."""
        self._used_at = now
