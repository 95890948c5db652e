"""Ending a task one owns."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancel_and_wait(task: asyncio.Task[Any]) -> None:
    """Cancel `task` and wait until it is over; raise what it died of, unless that was our cancelling.

    *Cancellation*: unlike suppressing `CancelledError` around an await, this lets the caller's own one pass.
    """
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
