"""A clock that the test advances. Nothing really waits: a sleeping task wakes when the clock is advanced to
its time.
"""

from __future__ import annotations

import asyncio

from rehearsal.roomtone.written.channel import ManualClock


class FakeClock(ManualClock):
    """A clock that is advanced by hand, with a way for a test to learn that a task sleeps."""

    def __init__(self, now: float = 1_760_000_000.0) -> None:
        super().__init__(now)
        self._asleep = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """See `ManualClock.sleep`."""
        self._asleep.set()
        try:
            await super().sleep(seconds)
        finally:
            if not self._sleepers:
                self._asleep.clear()

    @property
    def sleeping(self) -> int:
        """Return how many tasks sleep on this clock."""
        return len(self._sleepers)

    async def until_somebody_sleeps(self) -> None:
        """Wait until a task sleeps on this clock."""
        await self._asleep.wait()

    def advance(self, seconds: float) -> None:
        """See `ManualClock.advance`."""
        super().advance(seconds)
        if all(wake.done() for _, wake in self._sleepers):
            self._asleep.clear()
