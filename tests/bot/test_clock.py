"""The system clock's wall time and monotonic time, and the fake clock for tests."""

from __future__ import annotations

import asyncio
import time

import pytest

from bot.clock import Clock, SystemClock
from tests.fakes.clock import FakeClock


def test_the_machines_clocks() -> None:
    """`now` is UTC epoch seconds, and `monotonic` never goes back."""
    clock: Clock = SystemClock()
    assert abs(clock.now() - time.time()) < 60
    assert clock.monotonic() <= clock.monotonic()


@pytest.mark.asyncio
async def test_the_fake_wakes_sleepers_when_it_is_moved() -> None:
    """A sleep on the fake clock ends when the test has advanced the clock far enough, and not before."""
    clock = FakeClock(100.0)
    port: Clock = clock
    sleeper = asyncio.ensure_future(port.sleep(10))
    await asyncio.sleep(0)
    clock.advance(9)
    await asyncio.sleep(0)
    assert not sleeper.done()
    clock.advance(1)
    await sleeper
    assert (clock.now(), clock.monotonic(), clock.sleeping) == (110.0, 10.0, 0)
    await SystemClock().sleep(0)
