"""The two times the service reads, and the wait: behind one port, so that tests hold them still."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Where a shell gets its time. Decisions never read it: they are given `now`."""

    def now(self) -> float:
        """Return the wall clock as UTC epoch seconds: for what is stored and shown, never for durations."""

    def monotonic(self) -> float:
        """Return seconds that never go back: for latencies, deadlines and backoff."""

    async def sleep(self, seconds: float) -> None:
        """Wait. *Cancellation*: at once."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        """Return the wall clock as UTC epoch seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return the monotonic clock in seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        await asyncio.sleep(seconds)
