"""A clock the test moves: nothing waits, and sleepers wake when time is advanced past their hour."""

from __future__ import annotations

import asyncio


class FakeClock:
    """`bot.clock.Clock` held still. Wall clock and monotonic clock move together by `advance`."""

    def __init__(self, now: float = 1_760_000_000.0) -> None:
        self._now = now
        self._monotonic = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._asleep = asyncio.Event()

    def now(self) -> float:
        """Return the wall clock, UTC epoch seconds."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds since the test began."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Wait until the test has advanced the clock by `seconds`."""
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self._monotonic + seconds, wake)
        self._sleepers.append(sleeper)
        self._asleep.set()
        try:
            await wake
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)
            if not self._sleepers:
                self._asleep.clear()

    @property
    def sleeping(self) -> int:
        """Return how many tasks wait for the clock."""
        return len(self._sleepers)

    async def until_somebody_sleeps(self) -> None:
        """Wait until a task waits for the clock."""
        await self._asleep.wait()

    def advance(self, seconds: float) -> None:
        """Move both clocks on and wake those whose hour has come."""
        self._now += seconds
        self._monotonic += seconds
        for hour, wake in list(self._sleepers):
            if hour <= self._monotonic and not wake.done():
                wake.set_result(None)
        if all(wake.done() for _, wake in self._sleepers):
            self._asleep.clear()
