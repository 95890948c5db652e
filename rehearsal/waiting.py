"""Ways to wait: until something has changed, and until a task is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class Changes:
    """Lets any number of tasks wait until something holds: whoever changes anything tells it."""

    def __init__(self) -> None:
        self._told = asyncio.Event()

    def tell(self) -> None:
        """Let those who wait look again."""
        self._told.set()

    async def until(self, holds: Callable[[], bool], *, timeout_s: float) -> bool:
        """Wait until `holds` does. Return False when the time was up first."""
        try:
            async with asyncio.timeout(timeout_s):
                while not holds():
                    self._told.clear()
                    await self._told.wait()
        except TimeoutError:
            return holds()
        return True


async def cancel_and_wait(task: asyncio.Task[Any]) -> None:
    """Cancel `task` and wait until it is over. If the task failed with an error, raise that error.

    *Cancellation*: the caller can still be cancelled. Suppressing `CancelledError` around an await would prevent that.
    """
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
