"""`cancel_and_wait` raises the task's own failure, but not the cancellation that it caused."""

from __future__ import annotations

import asyncio

import pytest

from rehearsal.people.tasks import cancel_and_wait


@pytest.mark.asyncio
async def test_a_waiting_task_ends() -> None:
    """Cancelling a waiting task raises nothing."""
    task = asyncio.create_task(asyncio.Event().wait(), name="waits")
    await asyncio.sleep(0)
    await cancel_and_wait(task)
    assert task.cancelled()


@pytest.mark.asyncio
async def test_what_a_task_died_of_is_raised() -> None:
    """The exception of a task that failed in the background is raised."""

    async def fail() -> None:
        raise ValueError("broken")

    task = asyncio.create_task(fail(), name="fails")
    await asyncio.sleep(0)
    with pytest.raises(ValueError, match="broken"):
        await cancel_and_wait(task)


@pytest.mark.asyncio
async def test_the_callers_own_cancellation_passes() -> None:
    """A caller that waits for a task which does not end can be cancelled."""
    release = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await release.wait()

    task = asyncio.create_task(stubborn(), name="stubborn")
    await asyncio.sleep(0)
    caller = asyncio.create_task(cancel_and_wait(task), name="caller")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    release.set()
    await task
