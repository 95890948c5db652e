"""Puts the lines of several logs in the order of their times, also while they still come."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from bot.shared_log.requested_lines import time_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from bot.logs.reader import Event

# How many times lines are taken before the first are shown: a line from elsewhere takes up to a second.
_HELD: Final = 4


class TimeOrder:
    """Holds lines for a moment, so that earlier ones from elsewhere can come before them."""

    def __init__(self) -> None:
        self._batches: deque[list[tuple[str, Event]]] = deque()

    def add(self, lines: Iterable[tuple[str, Event]]) -> list[tuple[str, Event]]:
        """Add what has come now, and return what is to be shown now."""
        self._batches.append(list(lines))
        if len(self._batches) <= _HELD:
            return []
        due = self._batches.popleft()
        if not due:
            return []
        last = max(map(time_of_line, due))
        for index, batch in enumerate(self._batches):
            due += [each for each in batch if time_of_line(each) <= last]
            self._batches[index] = [each for each in batch if time_of_line(each) > last]
        return sorted(due, key=time_of_line)

    def rest(self) -> list[tuple[str, Event]]:
        """Return all that was not shown yet."""
        left = [each for batch in self._batches for each in batch]
        self._batches.clear()
        return sorted(left, key=time_of_line)


def time_of_line(line: tuple[str, Event]) -> datetime:
    """Return when a line was logged."""
    return time_of(line[1])
