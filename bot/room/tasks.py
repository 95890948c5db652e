"""A task that runs as long as its room.

A task group ignores a child that ended cancelled, whoever cancelled it. So a task that waited for something cancelled
elsewhere would end a room's hearing or replies unnoticed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine


class CancelledInsideError(RuntimeError):
    """A task of a room awaited something that was cancelled. This is a defect."""


async def run_for_room(work: Coroutine[Any, Any, object]) -> None:
    """Await `work`. Raises `CancelledInsideError` if it ends cancelled although nobody cancelled this task."""
    try:
        await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise CancelledInsideError(f"{task.get_name()} waited for something that was cancelled") from error
