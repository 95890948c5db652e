"""A step's marks in time wake those who wait for them."""

from __future__ import annotations

import asyncio

from rehearsal.runner.step_timing import Cue
from tests.rehearsal.virtual_time import run_virtually


def test_the_promise_comes_before_the_end() -> None:
    """Overlapping needs the promise; following needs the end."""

    async def scene() -> tuple[float, float, float]:
        cue, loop = Cue(), asyncio.get_running_loop()
        began = loop.time()
        loop.call_later(1.0, cue.begin, began + 5.0)
        loop.call_later(6.0, cue.end, began + 6.0)
        promised = await cue.promised_end() - began
        at = loop.time() - began
        await cue.ended()
        return promised, at, loop.time() - began

    assert run_virtually(scene()) == (5.0, 1.0, 6.0)


def test_an_end_without_a_beginning_is_its_own_promise() -> None:
    """Steps that are no speech only end."""

    async def scene() -> float:
        cue = Cue()
        cue.end(7.0)
        await cue.ended()
        return await cue.promised_end()

    assert run_virtually(scene()) == 7.0
