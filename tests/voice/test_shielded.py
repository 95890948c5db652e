"""What runs shielded ends, however often the task is cancelled that waits for it."""

from __future__ import annotations

import asyncio

import pytest

from voice.shielded import run_shielded


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
    """As it would be without a task of its own."""

    async def work() -> None:
        raise OSError("The line is cut.")

    with pytest.raises(OSError, match="The line is cut"):
        await run_shielded(work(), name="work")
