"""The shared recogniser: fair, bounded, and never stuck."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from structlog.testing import capture_logs

from tests.fakes.recognizer import FakeEngine
from voice.asr.scheduler import QueuedRecognizer
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from voice.asr.port import Recognition
    from voice.asr.worker import Engine
    from voice.audio import Pcm

pytestmark = pytest.mark.asyncio


def _sound(label: int) -> Pcm:
    return np.full(1600, label, dtype=np.int16)


def _ask(
    recognizer: QueuedRecognizer, label: int, *, speaker: int | None = None, interim: bool = False
) -> asyncio.Task[Recognition]:
    return asyncio.create_task(recognizer.recognize(_sound(label), speaker_id=speaker, interim=interim))


async def _settle() -> None:
    """Let every task run as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def _busy(engine: FakeEngine, recognizer: QueuedRecognizer) -> asyncio.Task[Recognition]:
    """Return a recognition that the engine holds, so that everything after it waits."""
    task = _ask(recognizer, 99)
    await asyncio.to_thread(engine.started.wait)
    return task


async def test_answers_reach_their_callers() -> None:
    """And the figures count them."""
    async with QueuedRecognizer(FakeEngine) as recognizer:
        answers = await asyncio.gather(*(_ask(recognizer, label) for label in range(1, 6)))
        assert [answer.text for answer in answers] == ["1", "2", "3", "4", "5"]
        figures = recognizer.figures
    assert (figures.completed, figures.queued, figures.running) == (5, 0, 0)
    assert figures.audio_s == pytest.approx(0.5)


async def test_speakers_take_turns_and_guesses_wait() -> None:
    """The order at the engine: one final of each speaker at a time, then the guesses."""
    engine = FakeEngine(held=True)
    async with QueuedRecognizer(lambda: engine) as recognizer:
        tasks = [await _busy(engine, recognizer)]
        for label, speaker, interim in [(30, 3, True), (11, 1, False), (12, 1, False), (13, 1, False), (21, 2, False)]:
            tasks.append(_ask(recognizer, label, speaker=speaker, interim=interim))
            await _settle()
        assert recognizer.figures.queued == 5
        engine.release()
        await asyncio.gather(*tasks)
    assert engine.order == [99, 11, 21, 12, 13, 30]
    assert recognizer.figures.queued_peak == 5


async def test_a_full_queue_sheds_the_oldest_guess_and_keeps_finished_speech() -> None:
    """The guess's caller is told; a further final waits for a place and is recognised."""
    engine = FakeEngine(held=True)
    async with QueuedRecognizer(lambda: engine, queue_size=2) as recognizer:
        busy = await _busy(engine, recognizer)
        guess = _ask(recognizer, 10, speaker=1, interim=True)
        finals = [_ask(recognizer, 20 + number, speaker=2) for number in range(4)]
        await _settle()
        with pytest.raises(RecogniserOverloadedError):
            await guess
        assert (recognizer.figures.queued, recognizer.figures.waiting) == (2, 2)
        with pytest.raises(RecogniserOverloadedError):
            await _ask(recognizer, 30, speaker=3, interim=True)
        assert recognizer.figures.shed == 2
        engine.release()
        assert [answer.text for answer in await asyncio.gather(*finals)] == ["20", "21", "22", "23"]
        await busy


async def test_the_latest_guess_replaces_the_older_one() -> None:
    """And the finished speech replaces both."""
    engine = FakeEngine(held=True)
    async with QueuedRecognizer(lambda: engine, queue_size=2) as recognizer:
        busy = await _busy(engine, recognizer)
        first = _ask(recognizer, 1, speaker=1, interim=True)
        await _settle()
        second = _ask(recognizer, 2, speaker=1, interim=True)
        await _settle()
        final = _ask(recognizer, 3, speaker=1)
        await _settle()
        for shed in (first, second):
            with pytest.raises(RecogniserOverloadedError, match="newer"):
                await shed
        engine.release()
        assert (await final).text == "3"
        await busy
    assert engine.order == [99, 3]


async def test_a_confirmed_guess_is_served_as_finished_speech() -> None:
    """It overtakes the guesses that were before it, and is answered to whoever asked."""
    engine = FakeEngine(held=True)
    async with QueuedRecognizer(lambda: engine) as recognizer:
        tasks = [await _busy(engine, recognizer)]
        for label in (1, 2):
            tasks.append(_ask(recognizer, label, speaker=label, interim=True))
            await _settle()
        recognizer.confirm(2)
        recognizer.confirm(3)
        engine.release()
        await asyncio.gather(*tasks)
    assert engine.order == [99, 2, 1]


async def test_a_cancelled_caller_leaves_the_queue() -> None:
    """Its place is free again and the model never hears it; a running one finishes unheard."""
    engine = FakeEngine(held=True)
    async with QueuedRecognizer(lambda: engine, queue_size=1) as recognizer:
        running = await _busy(engine, recognizer)
        queued = _ask(recognizer, 1)
        waiting = _ask(recognizer, 2)
        last = _ask(recognizer, 3)
        await _settle()
        for task in (queued, waiting, running):
            task.cancel()
            await _settle()
            assert task.cancelled()
        engine.release()
        assert (await last).text == "3"
    assert engine.order == [99, 3]


async def test_a_failure_costs_one_request() -> None:
    """The next one is answered by the same model."""
    engine = FakeEngine()
    async with QueuedRecognizer(lambda: engine) as recognizer:
        with capture_logs() as logs, pytest.raises(RecogniserError, match="The model failed"):
            await recognizer.recognize(_sound(-1))
        assert (await recognizer.recognize(_sound(2))).text == "2"
        assert recognizer.figures.reloads == 0
    assert [entry["event"] for entry in logs] == ["recognition_failed"]


async def test_a_model_that_keeps_failing_is_loaded_anew() -> None:
    """Three failures in a row are the model's; the fourth request meets a new one."""
    engines: list[FakeEngine] = []

    def load() -> Engine:
        engines.append(FakeEngine())
        return engines[-1]

    async with QueuedRecognizer(load) as recognizer:
        for _ in range(3):
            with pytest.raises(RecogniserError):
                await recognizer.recognize(_sound(-1))
        assert (await recognizer.recognize(_sound(4))).text == "4"
        assert recognizer.figures.reloads == 1
    assert [engine.order for engine in engines] == [[-1, -1, -1], [4]]


async def test_a_dead_thread_is_replaced() -> None:
    """Whoever it was computing for is told; the next request loads the model again."""
    async with QueuedRecognizer(FakeEngine) as recognizer:
        with pytest.raises(RecogniserError, match="thread died"):
            await recognizer.recognize(_sound(-3))
        assert (await recognizer.recognize(_sound(5))).text == "5"
        assert recognizer.figures.reloads == 1


async def test_a_hanging_model_is_left_behind() -> None:
    """The caller learns of the time limit, and the next request meets a new model."""
    engines = [FakeEngine(held=True), FakeEngine()]
    loaded = iter(engines)
    async with QueuedRecognizer(lambda: next(loaded), compute_timeout_s=0.3) as recognizer:
        with pytest.raises(RecogniserError, match=r"longer than 0\.3 s"):
            await recognizer.recognize(_sound(1))
        assert recognizer.figures.timed_out == 1
        assert (await recognizer.recognize(_sound(2))).text == "2"
    engines[0].release()


async def test_a_model_that_is_gone_fails_each_request_plainly_and_may_come_back() -> None:
    """A reload that fails is told to the caller; once it works, all is well again."""
    outcomes: list[Engine | RecogniserError] = [FakeEngine(), RecogniserError("The model is gone."), FakeEngine()]

    def load() -> Engine:
        outcome = outcomes.pop(0)
        if isinstance(outcome, RecogniserError):
            raise outcome
        return outcome

    async with QueuedRecognizer(load) as recognizer:
        with pytest.raises(RecogniserError, match="thread died"):
            await recognizer.recognize(_sound(-3))
        with pytest.raises(RecogniserError, match="The model is gone"):
            await recognizer.recognize(_sound(1))
        assert (await recognizer.recognize(_sound(2))).text == "2"


async def test_a_model_that_cannot_be_loaded_keeps_the_door_shut() -> None:
    """Entering raises, so that the operator sees it at the start."""

    def load() -> Engine:
        raise RecogniserError("No model there.")

    with pytest.raises(RecogniserError, match="No model there"):
        async with QueuedRecognizer(load):
            pass


async def test_closing_leaves_nobody_waiting() -> None:
    """The running, the queued and those without a place are told."""
    engine = FakeEngine(held=True)
    async with QueuedRecognizer(lambda: engine, queue_size=1) as recognizer:
        tasks = [await _busy(engine, recognizer)]
        tasks += [_ask(recognizer, label) for label in (1, 2, 3)]
        await _settle()
        asyncio.get_running_loop().call_later(0.05, engine.release)
    for task in tasks:
        with pytest.raises(RecogniserError, match=r"closed|not running"):
            await task
    with pytest.raises(RecogniserError, match="not running"):
        await recognizer.recognize(_sound(1))
