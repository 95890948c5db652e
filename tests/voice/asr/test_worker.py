"""The model's thread loads the model and answers requests. When it dies, every waiting caller gets an error."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.fakes.recogniser import FakeEngine
from tests.patience import PATIENCE_S
from voice.asr.worker import NICENESS, ModelThread, RecognitionRequest
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.asr.worker import Engine


def _request(label: int) -> RecognitionRequest:
    return RecognitionRequest(np.full(160, label, dtype=np.int16), None, ())


async def _started(load: Callable[[], Engine]) -> ModelThread:
    thread = ModelThread(load)
    await thread.start(timeout_s=PATIENCE_S)
    return thread


@pytest.mark.asyncio
async def test_recognitions_run_off_the_loop() -> None:
    """Recognitions run in a thread of their own and return in order, and stopping ends the thread."""
    names: list[str] = []

    def load() -> Engine:
        names.append(threading.current_thread().name)
        return FakeEngine()

    thread = await _started(load)
    assert [(await thread.run(_request(label)))[0].text for label in (1, 2)] == ["1", "2"]
    assert [heard.text for heard in await thread.run(_request(3), _request(4))] == ["3", "4"]
    assert names == ["speech-model"]
    assert await thread.stop(timeout_s=PATIENCE_S)
    assert not thread.is_alive
    assert await thread.stop(timeout_s=PATIENCE_S)


@pytest.mark.asyncio
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority by thread")
async def test_recognition_gives_way() -> None:
    """The model's thread, and so every thread that the model starts, has a lower priority than the event loop."""
    priorities: list[int] = []

    def load() -> Engine:
        priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return FakeEngine()

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    thread = await _started(load)
    assert await thread.stop(timeout_s=PATIENCE_S)
    assert priorities == [max(before, NICENESS)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (RecogniserError("No model there."), "No model there"),
        (OSError("disk gone"), "could not be loaded: disk gone"),
        (SystemExit(), "ended while loading"),
    ],
)
async def test_a_failed_load_is_raised_to_the_starter(problem: BaseException, message: str) -> None:
    """Every failure to load is raised to the starter as a `RecogniserError`."""

    def load() -> Engine:
        raise problem

    with pytest.raises(RecogniserError, match=message):
        await _started(load)


@pytest.mark.asyncio
async def test_a_load_that_hangs_is_given_up() -> None:
    """A load that takes too long raises an error that names what may help, and the late thread ends by itself."""
    go_on = threading.Event()

    def load() -> Engine:
        go_on.wait()
        return FakeEngine()

    thread = ModelThread(load)
    with pytest.raises(RecogniserError, match=r'disk, set asr\.device = "cpu", or .*asr\.model'):
        await thread.start(timeout_s=0.01)
    go_on.set()
    assert await thread.stop(timeout_s=PATIENCE_S)


@pytest.mark.asyncio
async def test_errors_are_translated_and_the_thread_goes_on() -> None:
    """An engine's refusal and a bug each fail one request, and the thread continues."""
    thread = await _started(FakeEngine)
    with pytest.raises(RecogniserError, match="The model failed"):
        await thread.run(_request(-1))
    with pytest.raises(RecogniserError, match="failed: a bug"):
        await thread.run(_request(-2))
    [heard] = await thread.run(_request(3))
    assert heard.text == "3"
    await thread.stop(timeout_s=PATIENCE_S)


@pytest.mark.asyncio
async def test_death_is_told_to_who_waits_and_who_comes() -> None:
    """When the thread dies, the running request and every later one get an error."""
    thread = await _started(FakeEngine)
    with pytest.raises(RecogniserError, match="thread died"):
        await thread.run(_request(-3))
    assert not thread.is_alive
    with pytest.raises(RecogniserError, match="has ended"):
        await thread.run(_request(1))


@pytest.mark.asyncio
async def test_a_thread_that_computes_on_is_reported() -> None:
    """Stopping a thread that still computes returns False after the time limit."""
    engine = FakeEngine(held=True)
    thread = await _started(lambda: engine)
    waiting = asyncio.create_task(thread.run(_request(1)))
    await asyncio.to_thread(engine.started.wait)
    assert not await thread.stop(timeout_s=0.01)
    engine.release()
    assert await thread.stop(timeout_s=PATIENCE_S)
    assert [heard.text for heard in await waiting] == ["1"]
