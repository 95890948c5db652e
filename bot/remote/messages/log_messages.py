"""The log of a room on another machine, as messages, and how much of it may go over the link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bot.remote.messages.frames import Notice

# A line with a traceback of 40 calls. Longer ones stay on their machine.
MOST_LINE_CHARS: Final = 8_000
# Of one message, which must not delay an opt-out behind it: 64 KiB take 50 ms on 10 Mbit/s.
MOST_LINES: Final = 50
MOST_CHARS: Final = 64_000
# A room in which people talk writes one or two lines a second.
LINES_PER_S: Final = 50.0


@dataclass(frozen=True, slots=True)
class FollowLog(Notice):
    """Tell the lines of the room's log from now on. `folder`: the mark of the gateway process's data folder
    (`link.link_file.folder_mark`). A process with the same one writes to the same file, and tells none.
    """

    folder: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log. `line`: JSON, without what people said. `age_s`: how long ago it was written."""

    line: str
    age_s: float


@dataclass(frozen=True, slots=True)
class LogTold(Notice):
    """Lines of a room's log, oldest first, at most `MOST_LINES`. `dropped`: how many before them were not told."""

    lines: tuple[LogLine, ...]
    dropped: int = 0


class LineBudget:
    """How many lines may pass now: `LINES_PER_S`, and `burst` of them at once."""

    def __init__(self, burst: int) -> None:
        self._burst = burst
        self._left = float(burst)
        self._at = float("-inf")

    def left(self, now: float) -> int:
        """Return how many may pass. `now`: monotonic seconds."""
        if now > self._at:
            self._left = min(float(self._burst), self._left + (now - self._at) * LINES_PER_S)
            self._at = now
        return int(self._left)

    def spend(self, count: int) -> None:
        """Take what passes out of the budget."""
        self._left -= count
