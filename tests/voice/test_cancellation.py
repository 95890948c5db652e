"""A task that nobody has cancelled ends loudly, and shielded work ends whoever is cancelled."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from voice.cancellation import CancelledInsideError, fail_if_cancelled_inside
from voice.shielded import run_shielded


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


@pytest.mark.parametrize("cancellations", [0, 1, 3])
async def test_a_cancellation_waits_until_the_work_is_done(cancellations: int) -> None:
    """The work is never broken off, and whoever has cancelled the task is obeyed afterwards."""
    goes_on, done = asyncio.Event(), False

    async def work() -> str:
        nonlocal done
        await goes_on.wait()
        done = True
        return "result"

    task = asyncio.create_task(run_shielded(work(), name="work"), name="waiting")
    await asyncio.sleep(0)
    for _ in range(cancellations):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    goes_on.set()
    await asyncio.wait([task])
    assert done
    assert task.cancelled() is bool(cancellations)
    assert task.cancelled() or task.result() == "result"


async def test_what_the_work_raises_is_raised() -> None:

    async def work() -> None:
        raise OSError("The line is cut.")

    with pytest.raises(OSError, match="The line is cut"):
        await run_shielded(work(), name="work")
