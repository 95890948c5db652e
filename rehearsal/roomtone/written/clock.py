"""A clock that is advanced by hand, so that hours pass in a moment."""

from __future__ import annotations

import asyncio

# The start of a written scenario, UTC epoch seconds.
EVENING_BEGINS = 1_760_043_600.0


class ManualClock:
    """Implements `bot.clock.Clock`. Both clocks move only by `advance`."""

    def __init__(self, now: float = EVENING_BEGINS) -> None:
        self._begun = now
        self._monotonic = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Return the wall clock, UTC epoch seconds."""
        return self._begun + self._monotonic

    def monotonic(self) -> float:
        """Return seconds since the clock was created."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has advanced by `seconds`. Can be cancelled at any time."""
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self._monotonic + seconds, wake)
        self._sleepers.append(sleeper)
        try:
            await wake
        finally:
            self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Advance both clocks and wake the sleepers that are due."""
        self._monotonic += seconds
        for hour, wake in self._sleepers:
            if hour <= self._monotonic and not wake.done():
                wake.set_result(None)
