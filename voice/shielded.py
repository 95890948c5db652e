"""Runs to its end what must happen when something ends, although the task that waits for it is cancelled meanwhile.

A room that has to leave may be told so again, or be cut off, while it leaves: the cancellation would break its cleaning
up off. `asyncio.shield` lets the work go on, but the task would not wait for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


async def run_shielded(work: Coroutine[Any, Any, T], *, name: str) -> T:
    """Run `work` in a task of this name, wait for its end, and return or raise what it does.

    Nothing breaks it off, so it must have time limits of its own. *Cancellation*: waits for its end all the same, and
    passes then, also if `work` has failed.
    """
    task = asyncio.create_task(work, name=name)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        raise cancellation from task.exception()
    return task.result()
