"""Chooses events of a log by session and name."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.logs.reader import Event


class EventFilter:
    """Decides which events are shown. `session`: the beginning of an id. `patterns`: names, in which * matches
    anything; none: all events.
    """

    def __init__(self, *, session: str | None, patterns: Sequence[str]) -> None:
        self.session = session
        self._patterns = tuple(patterns)

    def matches_session(self, event: Event) -> bool:
        """Return whether the event belongs to the selected session; True if none is selected."""
        return self.session is None or str(event.get("session_id", "")).startswith(self.session)

    def __contains__(self, event: Event) -> bool:
        if not self.matches_session(event):
            return False
        return not self._patterns or any(fnmatchcase(event["event"], pattern) for pattern in self._patterns)
