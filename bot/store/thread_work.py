"""Computes in a thread while a transaction is open: audio does not wait, and the database does not take the process for
one that hangs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import text

from bot.background_task import owned_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.ext.asyncio import AsyncConnection

T = TypeVar("T")

# PostgreSQL ends a transaction of which it hears nothing for `bot.store.database.STEP_S`. What a long session takes may
# be longer, on a busy machine several times as long.
_SIGN_EVERY_S = 1.0
_SIGN = text("SELECT 1")


async def in_thread(connection: AsyncConnection, work: Callable[[], T], *, sign_every_s: float = _SIGN_EVERY_S) -> T:
    """Return what `work` returns. Meanwhile the database is asked for nothing every second, so that it knows that this
    process is alive and not one that hangs, which it would keep from writing.

    *Cancellation*: the thread goes on, and its result is dropped.
    """
    async with owned_task(asyncio.to_thread(work), name="work-in-transaction") as running:
        while not (await asyncio.wait({running}, timeout=sign_every_s))[0]:
            await connection.execute(_SIGN)
        return await running
