"""Cancel a task."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancel_and_wait(task: asyncio.Task[Any]) -> None:
    """Cancel `task` and wait until it is over; raise its error, if it failed with one.

    *Cancellation*: the caller can still be cancelled, unlike with `CancelledError` suppressed around an await.
    """
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
