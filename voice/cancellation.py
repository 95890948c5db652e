"""Tells whether the current task is being cancelled, or only something that it awaits; and what ends too early. Runs
to its end what must happen when something ends.

A `CancelledError` also comes out of something awaited that was cancelled elsewhere, such as the connection of a tool
server. Then nobody has asked this task to end. A task group ignores a child that ended so, and would wait for the
others for ever: hearing or replies would stop unnoticed.

A room that has to leave may be told so again, or be cut off, while it leaves: the cancellation would break its cleaning
up off. `asyncio.shield` lets the work go on, but the task would not wait for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


_ResultT = TypeVar("_ResultT")


class EndedEarlyError(RuntimeError):
    """A task that lasts until somebody ends it has ended by itself. This is a defect."""


class CancelledInsideError(RuntimeError):
    """A task awaited something that was cancelled, and nobody cancelled the task itself. This is a defect."""


def is_being_cancelled() -> bool:
    """Return whether somebody has cancelled the current task. Call it where `CancelledError` is caught."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def cancellations() -> int:
    """Return how often the current task was told to end. More than before some work: it was told so meanwhile."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def fail_if_it_ends(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Await what `work` returns, for a child of a task group that lasts as long as its group. Raises `EndedEarlyError`
    if it returns, and `CancelledInsideError`.
    """
    await fail_if_cancelled_inside(work)
    task = asyncio.current_task()
    raise EndedEarlyError(f"{'' if task is None else task.get_name()} ended, and nobody had ended it")


async def fail_if_cancelled_inside(work: Callable[[], Coroutine[Any, Any, _ResultT]]) -> _ResultT:
    """Await and return what `work` returns, in a task of which others wait for more.

    Raises `CancelledInsideError` if it ends cancelled although nobody cancelled this task.
    """
    try:
        return await work()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or is_being_cancelled():
            raise
        raise CancelledInsideError(f"{task.get_name()} waited for something that was cancelled") from error


async def run_shielded(work: Coroutine[Any, Any, _ResultT], *, name: str) -> _ResultT:
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
