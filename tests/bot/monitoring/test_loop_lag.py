"""How late the event loop of a process is."""

from __future__ import annotations

import pytest

from bot.background_task import background_task
from bot.monitoring.loop_lag import MEASURE_EVERY_S, measure_lag
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock


@pytest.mark.asyncio
async def test_it_gives_every_few_seconds_how_late_the_loop_was() -> None:
    """Also that it was not; until its block is left."""
    clock, lags, late = FakeClock(), list[float](), list[float]()
    async with background_task(measure_lag(lags.append, clock), name="loop-lag"):
        await until(lambda: bool(clock.sleeping))
        for late_s in (0.25, 0.0, 1.5):
            late.append(late_s)
            clock.advance(MEASURE_EVERY_S + late_s)
            await until(lambda: len(lags) == len(late))
    assert lags == pytest.approx(late)
    assert clock.sleeping == 0
