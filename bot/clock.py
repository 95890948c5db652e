"""The wall clock, the monotonic clock and sleeping, behind one port so that tests can control time."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A source of time. Pure functions never read it: they take `now` as a parameter."""

    def now(self) -> float:
        """Return the wall clock as UTC epoch seconds. For stored and displayed times, never for durations."""

    def monotonic(self) -> float:
        """Return monotonic seconds. For latencies, deadlines and backoff."""

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`. Can be cancelled at any time."""


class SystemClock:
    """The machine's clocks. Set back, the wall clock goes on from where it was until the bot is started again: what was
    said later is never earlier, so what was forgotten before is told apart from it (`bot.store.forgettings`).
    """

    def __init__(self) -> None:
        self._ahead_s = float("-inf")

    def now(self) -> float:
        monotonic = time.monotonic()
        self._ahead_s = max(self._ahead_s, time.time() - monotonic)
        return monotonic + self._ahead_s

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
