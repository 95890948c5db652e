"""Lets the event loop run, and time pass for what waits on its clock, such as `call_later` and `asyncio.timeout`."""

from __future__ import annotations

import asyncio

import pytest


async def loop_turns(count: int = 5) -> None:
    """Let the running loop do this many times what is ready."""
    for _ in range(count):
        await asyncio.sleep(0)


def pass_loop_time(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Move the running loop's clock forward, for as long as the patch lasts. What is due then happens at once."""
    loop = asyncio.get_running_loop()
    before = loop.time
    patch.setattr(loop, "time", lambda: before() + seconds)


async def wait_out(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the loop run until something waits for `seconds` on its clock, and let that time pass. What has begun to wait
    and was not noticed, because the machine stood still, has waited by itself.
    """
    loop = asyncio.get_running_loop()
    over_at = loop.time() + seconds

    def has_begun(timer: asyncio.TimerHandle) -> bool:
        return seconds / 2 < timer.when() - loop.time() <= seconds and not timer.cancelled()

    def is_over() -> bool:
        return loop.time() >= over_at or any(map(has_begun, loop._scheduled))  # type: ignore[attr-defined]

    while not is_over():  # noqa: ASYNC110 - a timer sets no event
        await asyncio.sleep(0.002)
    pass_loop_time(patch, seconds)
