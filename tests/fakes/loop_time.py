"""Lets time pass for what waits on the event loop's clock, such as `call_later` and `asyncio.timeout`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pass_loop_time(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Move the running loop's clock forward, for as long as the patch lasts. What is due then happens at once."""
    loop = asyncio.get_running_loop()
    before = loop.time
    patch.setattr(loop, "time", lambda: before() + seconds)


async def wait_out(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the loop run until something waits for `seconds` on its clock, and let that time pass."""
    loop = asyncio.get_running_loop()

    def is_due(timer: asyncio.TimerHandle) -> bool:
        # What has just begun to wait has most of its time left, also on a busy machine.
        return seconds / 2 < timer.when() - loop.time() <= seconds and not timer.cancelled()

    # Without a limit, which would be a timer too.
    while not any(map(is_due, loop._scheduled)):  # type: ignore[attr-defined]  # noqa: ASYNC110 - timers set no event
        await asyncio.sleep(0.002)
    pass_loop_time(patch, seconds)
