"""A process that only a restart mends ends by itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bot.health import FaultKind, Health, HealthFault
from bot.monitoring.watchdog import DEAD_LOOKS, DeadError, watch
from bot.texts.text import Text
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

HANGS = """
import asyncio, time
from bot.clock import SystemClock
from bot.health import Health
from bot.monitoring.watchdog import watch
async def run():
    watching = asyncio.create_task(watch(Health(SystemClock()), SystemClock(), hung_s=0.2))
    await asyncio.sleep(0)
    time.sleep(1000)
asyncio.run(run())
"""


class Looks(FakeClock):
    """A clock that nobody waits for. `found`: what is wrong at each look."""

    def __init__(self, *found: HealthFault) -> None:
        super().__init__()
        self.found = list(found)

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.now_wrong = self.found.pop(0)


async def test_a_dead_process_is_ended_with_its_fault() -> None:
    """Not for a fault that passes, or that a restart does not mend."""
    dead = HealthFault(FaultKind.TASK, Text("My task has ended."), needs_restart=True)
    full = HealthFault(FaultKind.DISK, Text("The disk is full."))
    clock = Looks(*[dead] * (DEAD_LOOKS - 1), full, *[dead] * DEAD_LOOKS)
    health = Health(clock)
    health.add_check(lambda: [clock.now_wrong])
    health.started()
    with pytest.raises(DeadError, match="My task has ended"):
        await watch(health, clock, hung_s=PATIENCE_S)
    assert clock.found == []


@pytest.mark.slow
def test_an_event_loop_that_hangs_ends_the_process() -> None:
    """The terminal shows where it hangs."""
    ended = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert ended.returncode == 1
    assert "in run" in ended.stderr
