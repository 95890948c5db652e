"""When a room has been quiet for so long that the bot may say something of its own accord. Pure."""

from __future__ import annotations


class Lull:
    """One room's silence. `after_s`: how long it has to last, 0 for never; `every_s`: at most one lull is taken in
    that time. Times are monotonic seconds."""

    def __init__(self, *, after_s: float, every_s: float, now: float) -> None:
        self._after_s = after_s
        self._every_s = every_s
        self._sounded_at = now
        self._taken_at: float | None = None

    @property
    def wanted(self) -> bool:
        """Return whether there is such a thing at all."""
        return self._after_s > 0

    def sounded(self, at: float) -> None:
        """Somebody, or the bot, was heard until then, or came in."""
        self._sounded_at = max(self._sounded_at, at)

    def due(self, now: float) -> bool:
        """Return whether the silence is long enough, and the last time too."""
        waited = self._taken_at is None or now - self._taken_at >= self._every_s
        return self.wanted and waited and now - self._sounded_at >= self._after_s

    def taken(self, now: float) -> None:
        """The bot thinks about something to say."""
        self._taken_at = now
