"""Runs a task that lasts as long as its room, and reports it if it ends cancelled by mistake.

A task group ignores a child that ended cancelled, even if the group did not cancel it. A task that awaited something
cancelled elsewhere would then end a room's hearing or replies unnoticed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bot.cancellation import is_being_cancelled

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
        if task is None or is_being_cancelled():
            raise
        raise CancelledInsideError(f"{task.get_name()} waited for something that was cancelled") from error
