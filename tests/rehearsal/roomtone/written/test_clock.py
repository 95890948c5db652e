"""The manual clock wakes sleepers neither early nor late."""

from __future__ import annotations

import asyncio

from rehearsal.roomtone.written.clock import ManualClock


async def test_sleepers_wake_when_their_hour_has_come() -> None:
    """Sleepers wake in the order of their times, and cancelled ones are forgotten."""
    clock, woken = ManualClock(now=1000.0), list[float]()

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    tasks = [asyncio.create_task(sleep(seconds), name=f"sleeper-{seconds}") for seconds in (5.0, 60.0, 3600.0)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    for _ in range(60):
        clock.advance(1.0)
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert woken == [5.0]
    clock.advance(7200.0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert woken == [5.0, 3600.0]
    assert (clock.now(), clock.monotonic()) == (1000.0 + 7260.0, 7260.0)
