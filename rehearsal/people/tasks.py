"""Cancels a task and waits for its end."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancel_and_wait(task: asyncio.Task[Any]) -> None:
    """Cancel `task` and wait until it is over. If the task failed with an error, raise that error.

    *Cancellation*: the caller can still be cancelled. Suppressing `CancelledError` around an await would prevent that.
    """
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
