"""Runs a task beside a block of code, and logs why one that nobody awaits has failed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterable

ResultT = TypeVar("ResultT")

log = structlog.get_logger()


@asynccontextmanager
async def background_task(work: Coroutine[object, object, object], *, name: str) -> AsyncIterator[None]:
    """Run `work` as a task of this name for the duration of the block, then cancel it and wait for its end.

    What it raises is only logged, so work that shall go on handles its own failures.
    """
    task = logged_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def owned_task(work: Coroutine[object, object, ResultT], *, name: str) -> AsyncIterator[asyncio.Task[ResultT]]:
    """Run `work` as a task of this name for the block that awaits its result. It has ended when the block has.

    A failure that the block did not await is dropped: the block left early, with a reason of its own.
    """
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in (ending := list(tasks)):
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


def logged_task(work: Coroutine[object, object, ResultT], *, name: str) -> asyncio.Task[ResultT]:
    """Run `work` as a task of the caller, and log what it raises as soon as it is done, because nobody awaits it. Also
    log if it ended cancelled although nobody cancelled it.

    Asyncio reports the one only once nobody keeps the task, which for one that belongs to the process is never, and the
    other not at all.
    """
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_log_failure)
    return task


def _log_failure(task: asyncio.Task[object]) -> None:
    if task.cancelled():
        # Whoever cancels a task wants its end. Otherwise something that it awaited was cancelled, which is a defect.
        if not task.cancelling():
            log.error("task_ended_cancelled", task=task.get_name())
    elif (error := task.exception()) is not None:
        log.error("task_failed", task=task.get_name(), exc_info=error)
