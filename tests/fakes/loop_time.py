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
