"""Lets time pass for what waits on the event loop's clock, such as `call_later` and `asyncio.timeout`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.patience import settle

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
    timers: list[asyncio.TimerHandle] = loop._scheduled  # type: ignore[attr-defined]

    def begun() -> bool:
        return any(seconds / 2 < each.when() - loop.time() <= seconds and not each.cancelled() for each in timers)

    await settle(begun)
    pass_loop_time(patch, seconds)
