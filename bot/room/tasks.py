"""A task that lasts as long as its room. One that is cancelled from inside is a defect that must be told.

A task group passes over a child that ended cancelled, whoever cancelled it: a wait for something that was given up
elsewhere would end a room's ears or its answers, and nobody would hear of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine


class EndedFromInsideError(RuntimeError):
    """A task that should have lasted awaited something that was cancelled."""


async def lasting(work: Coroutine[Any, Any, object]) -> None:
    """Do `work`; a cancellation that nobody asked of this task becomes an error that its owner hears of."""
    try:
        await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise EndedFromInsideError(f"{task.get_name()} waited for something that was cancelled") from error
