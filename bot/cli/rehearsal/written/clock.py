"""A clock that is moved by hand: hours pass in a moment, and whoever sleeps wakes when their hour has come."""

from __future__ import annotations

import asyncio

# When the written evening begins, UTC: nine in the evening of a day like any other.
EVENING_BEGINS = 1_760_043_600.0


class ManualClock:
    """`bot.clock.Clock` held still. Wall clock and monotonic clock move together by `advance`."""

    def __init__(self, now: float = EVENING_BEGINS) -> None:
        self._begun = now
        self._monotonic = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Return the wall clock, UTC epoch seconds."""
        return self._begun + self._monotonic

    def monotonic(self) -> float:
        """Return seconds since the clock was made."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been moved on by `seconds`. *Cancellation*: at once."""
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self._monotonic + seconds, wake)
        self._sleepers.append(sleeper)
        try:
            await wake
        finally:
            self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Move both clocks on and wake those whose hour has come."""
        self._monotonic += seconds
        for hour, wake in self._sleepers:
            if hour <= self._monotonic and not wake.done():
                wake.set_result(None)
