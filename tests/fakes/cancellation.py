"""Something to await that was cancelled elsewhere, such as a connection that another task has closed."""

from __future__ import annotations

import asyncio


async def cancelled_elsewhere(*_: object, **__: object) -> None:
    """Raise `CancelledError`, though nobody cancels the task that awaits this. Stands for any coroutine function."""
    connection: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    connection.cancel()
    await connection
