"""A long-running task raises an error if it ends by a cancellation that nobody requested."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from voice.cancellation import CancelledInsideError, fail_if_cancelled_inside


async def _wait_for(something: asyncio.Future[None]) -> None:
    await something


async def _group(something: asyncio.Future[None]) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fail_if_cancelled_inside(partial(_wait_for, something)), name="replies")
        tasks.create_task(fail_if_cancelled_inside(asyncio.Event().wait), name="ears")
        await asyncio.sleep(0)
        something.cancel()


async def test_what_is_cancelled_from_inside_ends_its_group_loudly() -> None:
    """If a child awaits something that is cancelled, its task group fails instead of waiting for the other children for
    ever.
    """
    with pytest.raises(ExceptionGroup) as caught:
        await _group(asyncio.get_running_loop().create_future())
    (error,) = caught.value.exceptions
    assert isinstance(error, CancelledInsideError)
    assert "replies" in str(error)


async def test_who_is_told_to_end_ends() -> None:
    """A task that is cancelled from outside ends with `CancelledError`, and one that finishes ends normally."""
    task = asyncio.create_task(fail_if_cancelled_inside(asyncio.Event().wait), name="ears")
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await fail_if_cancelled_inside(partial(asyncio.sleep, 0))
