"""The log lines of rooms, told to a gateway process of another machine, so that its log has all rooms.

A line belongs to the room in whose tasks it was written. One that no room has written, a library's thread for example,
goes with the oldest room. Nothing waits: what is too much is dropped, oldest first, and counted. This machine's log has
every line anyway.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from bot.remote.messages.log_messages import (
    MOST_CHARS,
    MOST_LINE_CHARS,
    MOST_LINES,
    FollowLog,
    LineBudget,
    LogLine,
    LogTold,
)
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bot.clock import Clock
    from bot.remote.link.gateway_link import GatewayLink

# Four seconds at most that a room writes, or some minutes of one in which nothing is wrong.
MOST_WAITING: Final = 200
# What is left of the text of a traceback that is too long: its end says what failed.
_SHORT_CHARS: Final = 2_000
_LONG_KEYS: Final = ("exception", "stack")

_room_now: ContextVar[RoomLog | None] = ContextVar("room_log", default=None)


class RoomLogs:
    """The logs of all rooms of the process."""

    def __init__(self) -> None:
        self._rooms: list[RoomLog] = []
        # Of rooms that have ended.
        self._dropped = 0

    @property
    def queue(self) -> QueueFigures:
        """Return how many lines wait."""
        dropped = self._dropped + sum(room.dropped for room in self._rooms)
        capacity = max(1, len(self._rooms)) * MOST_WAITING
        return QueueFigures("room_log", sum(room.waiting for room in self._rooms), capacity, {"full": dropped})

    def take(self, line: str) -> None:
        """Take a line that was written to the log, from any thread."""
        room = _room_now.get()
        if room is None:
            # A copy: the event loop may change the list.
            room = next((each for each in list(self._rooms) if each.is_followed), None)
        if room is not None:
            room.add(line)

    @contextmanager
    def of_room(self, room: RoomLog) -> Iterator[None]:
        """Take the lines of all tasks that are started in this block as a room's."""
        self._rooms.append(room)
        before = _room_now.set(room)
        try:
            yield
        finally:
            _room_now.reset(before)
            self._rooms.remove(room)
            self._dropped += room.dropped


class RoomLog:
    """The log of one room. It keeps lines once the gateway process has asked for them. `link`: is not open yet.
    `is_same_log`: whether a gateway process whose data folder has this mark writes to the same file as this process.
    """

    def __init__(self, link: GatewayLink, clock: Clock, is_same_log: Callable[[str], bool]) -> None:
        self._link = link
        self._clock = clock
        self._is_same_log = is_same_log
        self._lock = threading.Lock()
        self._waiting: deque[tuple[float, str]] = deque()
        self._budget = LineBudget(MOST_LINES)
        # In all, and how many of them were told.
        self.dropped = self._dropped_told = 0
        self.is_followed = False
        # Whether the gateway process that is there now has asked.
        self._is_asked = False
        link.handlers.hear(FollowLog, self._on_follow)
        link.on_opened(self._on_opened)

    @property
    def waiting(self) -> int:
        """Return how many lines wait."""
        return len(self._waiting)

    def add(self, line: str) -> None:
        """Keep a line, from any thread."""
        if not self.is_followed:
            return
        line = line if len(line) <= MOST_LINE_CHARS else _shortened(line)
        with self._lock:
            if len(line) > MOST_LINE_CHARS:
                self.dropped += 1
                return
            if len(self._waiting) >= MOST_WAITING:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append((self._clock.monotonic(), line))

    def tell(self, *, ending: bool = False) -> None:
        """Tell the lines that wait, as many as may be told now; `ending` changes nothing. See `RoomPublisher`."""
        del ending
        if not self._is_asked or not self._link.is_open:
            return
        now = self._clock.monotonic()
        lines: list[LogLine] = []
        chars, left = 0, self._budget.left(now)
        with self._lock:
            while self._waiting and len(lines) < left and chars + len(self._waiting[0][1]) <= MOST_CHARS:
                written_at, line = self._waiting.popleft()
                chars += len(line)
                lines.append(LogLine(line, max(0.0, now - written_at)))
            dropped, self._dropped_told = self.dropped - self._dropped_told, self.dropped
        if lines or dropped:
            self._budget.spend(len(lines))
            self._link.tell(LogTold(tuple(lines), dropped))

    def _on_opened(self) -> None:
        # It may be another gateway process, which has a log of its own.
        self._is_asked = False

    def _on_follow(self, told: FollowLog) -> None:
        self.is_followed = self._is_asked = not self._is_same_log(told.folder)
        if not self.is_followed:
            with self._lock:
                self._waiting.clear()


def _shortened(line: str) -> str:
    """Return a line without the beginnings of its tracebacks."""
    event = json.loads(line)
    for key in _LONG_KEYS:
        if isinstance(event.get(key), str):
            event[key] = event[key][-_SHORT_CHARS:]
    return json.dumps(event)
