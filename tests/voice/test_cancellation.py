"""Tasks and threads end: loudly if nobody has cancelled them, and in time if they hang."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import CancelledError
from functools import partial

import pytest
from structlog.testing import capture_logs

from tests.patience import PATIENCE_S
from voice.cancellation import CancelledInsideError, fail_if_cancelled_inside, run_shielded
from voice.daemon_thread import NICENESS, DaemonThread


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

    with pytest.raises(OSError, match="cut"):
        await run_shielded(work(), name="work")


def test_calls_run_in_order_and_their_errors_reach_the_caller() -> None:
    """A call that raises ends neither the thread nor the calls after it."""
    thread = DaemonThread("calls")
    order: list[int] = []
    first, broken, last = (thread.submit(call) for call in (lambda: order.append(1), lambda: 1 // 0, lambda: 3))
    assert first.result(10) is None
    assert isinstance(broken.exception(10), ZeroDivisionError)
    assert (last.result(10), order) == (3, [1])
    thread.close()


async def test_a_call_that_hangs_keeps_nothing_alive() -> None:
    """The thread is a daemon, which the interpreter does not wait for, and closing it waits for nothing. What waits
    behind the call is cancelled.
    """
    thread = DaemonThread("hangs")
    begun, gate = threading.Event(), threading.Event()

    def hang() -> bool:
        begun.set()
        return gate.wait()

    hanging = thread.submit(hang)
    begun.wait()
    behind = thread.submit(lambda: True)
    [found] = [each for each in threading.enumerate() if each.name == "hangs"]
    assert found.daemon
    thread.close()
    with pytest.raises(CancelledError):
        behind.result(10)
    gate.set()
    assert hanging.result(10)
    await thread.stop(within_s=PATIENCE_S)
    assert not found.is_alive()


async def test_who_waits_for_a_call_that_hangs_is_told_in_time() -> None:
    """For its result, and for the end of the thread, which the log tells of."""
    begun, gate = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        gate.wait(PATIENCE_S)

    thread = DaemonThread("hangs")
    thread.submit(hang)
    begun.wait()
    with pytest.raises(TimeoutError):
        await thread.run(lambda: True, within_s=0.0)
    with capture_logs() as logs:
        await thread.stop(within_s=0.0)
    assert logs == [{"event": "model_thread_left_behind", "log_level": "warning", "worker": "hangs", "waited_s": 0.0}]
    gate.set()
    with capture_logs() as logs:
        await thread.stop(within_s=PATIENCE_S)
    assert logs == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority by thread")
def test_a_thread_may_give_way() -> None:
    """It has a lower priority than the event loop, and so has every thread that a model starts from it."""

    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = priority()
    thread = DaemonThread("gives-way", gives_way=True)
    assert thread.submit(priority).result(10) == max(before, NICENESS)
    thread.close()
    assert priority() == before
