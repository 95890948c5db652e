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
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
