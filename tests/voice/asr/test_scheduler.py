"""The shared recogniser serves speakers fairly, bounds its queue, and recovers from failures."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from structlog.testing import capture_logs

from tests.fakes.recogniser import FakeEngine
from voice.asr.reloading_model import FAILURES_BEFORE_RELOAD, FIRST_PAUSE_S
from voice.asr.scheduler import CERTAIN_AFTER_S, QueuedRecogniser
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from voice.asr.port import Recognition
    from voice.audio import Pcm


def _sound(label: int) -> Pcm:
    return np.full(1600, label, dtype=np.int16)


def _ask(
    recogniser: QueuedRecogniser, label: int, *, speaker: int | None = None, interim: bool = False
) -> asyncio.Task[Recognition]:
    return asyncio.create_task(recogniser.recognise(_sound(label), speaker_id=speaker, interim=interim))


async def _settle() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


async def _busy(engine: FakeEngine, recogniser: QueuedRecogniser) -> asyncio.Task[Recognition]:
    """Start a recognition that keeps the engine busy, so that every later one waits."""
    task = _ask(recogniser, 99)
    await asyncio.to_thread(engine.started.wait)
    return task


async def test_answers_reach_their_callers() -> None:
    """Each caller gets the answer for its own sound, and the figures count all of them."""
    async with QueuedRecogniser(FakeEngine) as recogniser:
        answers = await asyncio.gather(*(_ask(recogniser, label) for label in range(1, 6)))
        assert [answer.text for answer in answers] == ["1", "2", "3", "4", "5"]
        figures = recogniser.figures
    assert (figures.completed, figures.queued, figures.running) == (5, 0, 0)
    assert figures.audio_s == pytest.approx(0.5)


async def test_the_model_knows_whether_others_wait_by_now() -> None:
    """It asks while it computes, so whoever came since it began counts too."""
    engine = FakeEngine(held=True)
    async with QueuedRecogniser(lambda: engine) as recogniser:
        busy = await _busy(engine, recogniser)
        later = _ask(recogniser, 1, speaker=1, interim=True)
        await _settle()
        engine.release()
        await asyncio.gather(busy, later)
    assert engine.others_waited == [True, False]


async def test_a_full_queue_sheds_the_oldest_guess_and_keeps_finished_speech() -> None:
    """A full queue drops interim requests with an error, and a further final request waits for a place and is
    recognised.
    """
    engine = FakeEngine(held=True)
    async with QueuedRecogniser(lambda: engine, queue_size=2) as recogniser:
        busy = await _busy(engine, recogniser)
        guess = _ask(recogniser, 10, speaker=1, interim=True)
        finals = [_ask(recogniser, 20 + number, speaker=2) for number in range(4)]
        await _settle()
        with pytest.raises(RecogniserOverloadedError):
            await guess
        assert (recogniser.figures.queued, recogniser.figures.waiting) == (2, 2)
        with pytest.raises(RecogniserOverloadedError):
            await _ask(recogniser, 30, speaker=3, interim=True)
        assert recogniser.figures.shed == 2
        engine.release()
        assert [answer.text for answer in await asyncio.gather(*finals)] == ["20", "21", "22", "23"]
        await busy


async def test_a_confirmed_guess_is_served_as_finished_speech() -> None:
    """A confirmed interim request is served before the other interim requests, and its caller gets the answer."""
    engine = FakeEngine(held=True)
    async with QueuedRecogniser(lambda: engine) as recogniser:
        tasks = [await _busy(engine, recogniser)]
        for label in (1, 2):
            tasks.append(_ask(recogniser, label, speaker=label, interim=True))
            await _settle()
        recogniser.confirm(2)
        recogniser.confirm(3)
        engine.release()
        await asyncio.gather(*tasks)
    assert engine.order == [99, 2, 1]


async def test_a_cancelled_caller_leaves_the_queue() -> None:
    """A cancelled request leaves the queue and never reaches the model. If it is running, its answer is dropped."""
    engine = FakeEngine(held=True)
    async with QueuedRecogniser(lambda: engine, queue_size=1) as recogniser:
        running = await _busy(engine, recogniser)
        queued = _ask(recogniser, 1)
        waiting = _ask(recogniser, 2)
        last = _ask(recogniser, 3)
        await _settle()
        for task in (queued, waiting, running):
            task.cancel()
            await _settle()
            assert task.cancelled()
        engine.release()
        assert (await last).text == "3"
    assert engine.order == [99, 3]


@pytest.mark.parametrize(("label", "problem"), [(-1, "The model failed"), (-2, "failed: a bug")])
async def test_a_failure_costs_one_request(label: int, problem: str) -> None:
    """After a request that the engine refused, or on which it broke, the same model answers the next one."""
    engine = FakeEngine()
    async with QueuedRecogniser(lambda: engine) as recogniser:
        with capture_logs() as logs, pytest.raises(RecogniserError, match=problem):
            await recogniser.recognise(_sound(label))
        assert (await recogniser.recognise(_sound(2))).text == "2"
        assert recogniser.figures.reloads == 0
    assert [entry["event"] for entry in logs] == ["recognition_failed"]


async def test_a_system_without_threads_costs_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system allows no new thread for the model, requests fail, and one after a pause tries again."""
    now = 0.0

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with QueuedRecogniser(FakeEngine, monotonic=lambda: now) as recogniser:
        for _ in range(FAILURES_BEFORE_RELOAD):
            with pytest.raises(RecogniserError, match="failed"):
                await recogniser.recognise(_sound(-1))
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RecogniserError, match="no further thread"):
                await recogniser.recognise(_sound(4))
        now = FIRST_PAUSE_S
        assert (await recogniser.recognise(_sound(5))).text == "5"


async def test_closing_leaves_nobody_waiting() -> None:
    """Closing raises an error in every caller: the running one, the queued ones and those without a place
    in the queue.
    """
    engine = FakeEngine(held=True)
    async with QueuedRecogniser(lambda: engine, queue_size=1) as recogniser:
        tasks = [await _busy(engine, recogniser)]
        tasks += [_ask(recogniser, label) for label in (1, 2, 3)]
        await _settle()
        asyncio.get_running_loop().call_later(0.05, engine.release)
    for task in tasks:
        with pytest.raises(RecogniserError, match=r"closed|not running"):
            await task
    with pytest.raises(RecogniserError, match="not running"):
        await recogniser.recognise(_sound(1))


async def test_a_careful_second_pass_never_delays_finished_speech() -> None:
    """A careful request is refused while finished speech waits, waits behind what comes later, and is then served
    carefully.
    """
    engine = FakeEngine(held=True)
    async with QueuedRecogniser(lambda: engine) as recogniser:
        busy = await _busy(engine, recogniser)
        careful = asyncio.create_task(recogniser.recognise(_sound(1), speaker_id=1, careful=True))
        await _settle()
        final = _ask(recogniser, 2, speaker=2)
        await _settle()
        with pytest.raises(RecogniserOverloadedError, match="Finished speech waits"):
            await recogniser.recognise(_sound(3), speaker_id=3, careful=True)
        engine.release()
        await asyncio.gather(busy, careful, final)
    assert engine.order == [99, 2, 1]
    assert engine.careful == [False, False, True]
    assert recogniser.figures.shed == 1


@pytest.mark.parametrize(("waited_s", "order"), [(CERTAIN_AFTER_S, [99, 2, 1, 3]), (1.0, [99, 2, 3, 1])])
async def test_a_guess_that_nobody_takes_back_is_finished_speech(waited_s: float, order: list[int]) -> None:
    """An interim whose confirmation never came has its turn all the same, while finished speech goes on to come."""
    engine, now = FakeEngine(held=True), [0.0]
    async with QueuedRecogniser(lambda: engine, monotonic=lambda: now[0]) as recogniser:
        tasks = [await _busy(engine, recogniser), _ask(recogniser, 1, speaker=1, interim=True)]
        await _settle()
        tasks += [_ask(recogniser, label, speaker=2) for label in (2, 3)]
        await _settle()
        now[0] = waited_s
        engine.release()
        await asyncio.gather(*tasks)
    assert engine.order == order


async def test_what_waits_and_is_of_like_length_is_computed_together() -> None:
    """Four wait when the model is free, of which three are of one length; each caller gets its own text."""
    engine = FakeEngine(held=True)
    async with QueuedRecogniser(lambda: engine, batch_size=4) as recogniser:
        tasks = [await _busy(engine, recogniser)]
        tasks += [_ask(recogniser, label, speaker=label) for label in (1, 2)]
        tasks.append(asyncio.create_task(recogniser.recognise(np.full(160_000, 3, np.int16), speaker_id=3)))
        tasks.append(_ask(recogniser, 4, speaker=4))
        await _settle()
        engine.release()
        assert [heard.text for heard in await asyncio.gather(*tasks)] == ["99", "1", "2", "3", "4"]
    assert engine.batches == [1, 3, 1]
    assert engine.order == [99, 1, 2, 4, 3]
    assert recogniser.figures.completed == 5


async def test_a_recognition_that_fails_costs_nobody_else_the_text() -> None:
    """What fails together is computed alone."""
    engine = FakeEngine(held=True)
    async with QueuedRecogniser(lambda: engine, batch_size=4) as recogniser:
        tasks = [await _busy(engine, recogniser), *(_ask(recogniser, label, speaker=label) for label in (1, -1, 2))]
        await _settle()
        engine.release()
        heard = await asyncio.gather(*tasks, return_exceptions=True)
    assert [each.text for each in heard if not isinstance(each, BaseException)] == ["99", "1", "2"]
    assert [type(each) for each in heard if isinstance(each, BaseException)] == [RecogniserError]
    assert (recogniser.figures.completed, recogniser.figures.failed) == (3, 1)
