"""The shared recogniser serves speakers fairly, bounds its queue, and recovers from failures."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.typing import EventDict

from tests.fakes.loop_time import loop_turns
from tests.fakes.recogniser import FakeEngine
from voice.asr.fair_queue import FairQueue
from voice.asr.port import Recognition, RecognitionRequest
from voice.asr.reloading_model import FAILURES_BEFORE_RELOAD, FIRST_PAUSE_S
from voice.asr.scheduler import CERTAIN_AFTER_S, QueuedRecogniser
from voice.audio import Pcm
from voice.errors import RecogniserError, RecogniserOverloadedError


def _drain(queue: FairQueue[str]) -> list[str]:
    jobs = []
    while (entry := queue.next()) is not None:
        jobs.append(entry.job)
    return jobs


def _play(script: str) -> str:
    """Return what leaves the queue. A step is a sign and a request, of the speaker whose letter it begins with: `+`
    finished speech, `?` an interim, `!` the confirmation of the speaker's interim, `-` one is shed for the speaker.
    Those that were shed (`-`) or replaced (`~`) have a sign before them; at the end the others are served.
    """
    queue: FairQueue[str] = FairQueue()
    left = []
    for step in script.split():
        sign, job, speaker = step[0], step[1:], ord(step[1])
        match sign:
            case "!":
                queue.confirm(speaker)
            case "-":
                shed = queue.shed_interim(of=speaker)
                left.append("-" if shed is None else f"-{shed.job}")
            case _:
                _, replaced = queue.add(job, speaker=speaker, interim=sign == "?")
                left += [] if replaced is None else [f"~{replaced.job}"]
    return " ".join([*left, *_drain(queue)])


@pytest.mark.parametrize(
    ("script", "served"),
    [
        # Speakers are served in turn, and each speaker's requests stay in order, however many one has.
        ("+a1 +a2 +a3 +b1 +c1 +b2", "a1 b1 c1 a2 b2 a3"),
        # Interims wait behind all finished speech, even if they have waited longer.
        ("?a1 ?b1 +c1", "c1 a1 b1"),
        # A speaker's newer request, interim or final, replaces the interim that waits.
        ("?a1 ?a2 +a3", "~a1 ~a2 a3"),
        # The speaker's own interim is shed, otherwise the oldest one, and never finished speech.
        ("?a1 ?b1 +c1 -b -d -d", "-b1 -a1 - c1"),
        # A confirmed interim is served after the speaker's earlier speech, and cannot be shed.
        ("+a1 ?a2 ?b1 !a !a -a", "-b1 a1 a2"),
    ],
)
def test_the_order(script: str, served: str) -> None:
    assert _play(script) == served


def test_what_fits_is_taken_out_of_turn_and_each_speaker_stays_in_order() -> None:
    """Only the first entry of each speaker is looked at; who was served waits for the others."""
    queue: FairQueue[str] = FairQueue()
    for job, speaker in [("long a", 1), ("short a", 1), ("short b", 2), ("short b2", 2), ("short c", 3)]:
        queue.add(job, speaker=speaker, interim=False)
    queue.add("short guess", speaker=4, interim=True)

    taken = []
    while short := [entry for entry in queue.firsts if entry.job.startswith("short")]:
        taken.append(queue.take(short[0]).job)
    assert taken == ["short b", "short c", "short b2"]
    assert len(queue) == 3
    assert _drain(queue) == ["long a", "short a", "short guess"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("next"), st.just(0), st.just(False)),
        st.tuples(st.just("shed"), st.integers(0, 3), st.just(False)),
    ),
    max_size=60,
)


@given(steps)
def test_every_final_comes_out_once_in_its_speakers_order(schedule: list[tuple[str, int, bool]]) -> None:
    """After any adding, taking and shedding, all final requests come out in each speaker's order, and the length is
    right.
    """
    queue: FairQueue[tuple[int, int]] = FairQueue()
    added: list[tuple[int, int]] = []
    out: list[tuple[int, int]] = []
    inside = 0
    for number, (step, speaker, interim) in enumerate(schedule):
        if step == "add":
            _, replaced = queue.add((speaker, number), speaker=speaker, interim=interim)
            inside += 1 if replaced is None else 0
            if not interim:
                added.append((speaker, number))
        else:
            entry = queue.next() if step == "next" else queue.shed_interim(of=speaker)
            inside -= entry is not None
            if entry is not None and not entry.interim:
                assert step == "next"
                out.append(entry.job)
        assert len(queue) == inside
    while (last := queue.next()) is not None:
        if not last.interim:
            out.append(last.job)
    for speaker in range(4):
        assert [job for job in out if job[0] == speaker] == [job for job in added if job[0] == speaker]


def _sound(label: int) -> Pcm:
    return np.full(1600, label, dtype=np.int16)


def _ask(
    recogniser: QueuedRecogniser, label: int, *, speaker: int | None = None, interim: bool = False
) -> asyncio.Task[Recognition]:
    return asyncio.create_task(
        recogniser.recognise(RecognitionRequest(_sound(label), speaker_id=speaker, interim=interim))
    )


async def _busy(engine: FakeEngine, recogniser: QueuedRecogniser) -> asyncio.Task[Recognition]:
    """Start a recognition that keeps the engine busy, so that every later one waits."""
    task = _ask(recogniser, 99)
    await asyncio.to_thread(engine.started.wait)
    return task


@pytest.fixture
def engine() -> FakeEngine:
    """An engine that answers when it is released."""
    return FakeEngine(held=True)


async def test_the_model_knows_whether_others_wait_by_now(engine: FakeEngine) -> None:
    """It asks while it computes, so whoever came since it began counts too."""
    async with QueuedRecogniser(engine) as recogniser:
        busy = await _busy(engine, recogniser)
        later = _ask(recogniser, 1, speaker=1, interim=True)
        await loop_turns(10)
        engine.release()
        await asyncio.gather(busy, later)
    assert engine.others_waited == [True, False]


async def test_a_full_queue_sheds_the_oldest_guess_and_keeps_finished_speech(engine: FakeEngine) -> None:
    """A full queue drops interim requests with an error, and further finished speech waits and is recognised."""
    async with QueuedRecogniser(engine, queue_size=2) as recogniser:
        busy = await _busy(engine, recogniser)
        guess = _ask(recogniser, 10, speaker=1, interim=True)
        finals = [_ask(recogniser, 20 + number, speaker=2) for number in range(4)]
        await loop_turns(10)
        with pytest.raises(RecogniserOverloadedError):
            await guess
        assert recogniser.queue.waiting == 4
        with pytest.raises(RecogniserOverloadedError):
            await _ask(recogniser, 30, speaker=3, interim=True)
        assert recogniser.figures.shed == 2
        engine.release()
        assert [answer.text for answer in await asyncio.gather(*finals)] == ["20", "21", "22", "23"]
        await busy


async def test_a_confirmed_guess_is_served_as_finished_speech(engine: FakeEngine) -> None:
    """A confirmed interim request is served before the other interim requests, and its caller gets the answer."""
    async with QueuedRecogniser(engine) as recogniser:
        tasks = [await _busy(engine, recogniser)]
        for label in (1, 2):
            tasks.append(_ask(recogniser, label, speaker=label, interim=True))
            await loop_turns(10)
        recogniser.confirm(2)
        recogniser.confirm(3)
        engine.release()
        await asyncio.gather(*tasks)
    assert engine.order == [99, 2, 1]


async def test_a_cancelled_caller_leaves_the_queue(engine: FakeEngine) -> None:
    """A cancelled request leaves the queue and never reaches the model. If it is running, its answer is dropped."""
    async with QueuedRecogniser(engine, queue_size=1) as recogniser:
        running = await _busy(engine, recogniser)
        queued = _ask(recogniser, 1)
        waiting = _ask(recogniser, 2)
        last = _ask(recogniser, 3)
        await loop_turns(10)
        for task in (queued, waiting, running):
            task.cancel()
            await loop_turns(10)
            assert task.cancelled()
        engine.release()
        assert (await last).text == "3"
    assert engine.order == [99, 3]


@pytest.mark.parametrize(("label", "problem"), [(-1, "model failed"), (-2, "bug")])
async def test_a_failure_costs_one_request(label: int, problem: str, logs: list[EventDict]) -> None:
    """After a request that the engine refused, or on which it broke, the same model answers the next one."""
    engine = FakeEngine()
    async with QueuedRecogniser(engine) as recogniser:
        with pytest.raises(RecogniserError, match=problem):
            await recogniser.recognise(RecognitionRequest(_sound(label)))
        assert (await recogniser.recognise(RecognitionRequest(_sound(2)))).text == "2"
        assert recogniser.figures.reloads == 0
    assert [entry["event"] for entry in logs] == ["recognition_failed"]


async def test_a_system_without_threads_costs_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system allows no new thread for the model, requests fail, and one after a pause tries again."""
    now = 0.0

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with QueuedRecogniser(FakeEngine(), monotonic=lambda: now) as recogniser:
        for _ in range(FAILURES_BEFORE_RELOAD):
            with pytest.raises(RecogniserError, match="failed"):
                await recogniser.recognise(RecognitionRequest(_sound(-1)))
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RecogniserError, match="thread"):
                await recogniser.recognise(RecognitionRequest(_sound(4)))
        now = FIRST_PAUSE_S
        assert (await recogniser.recognise(RecognitionRequest(_sound(5)))).text == "5"


async def test_closing_leaves_nobody_waiting(engine: FakeEngine) -> None:
    """Closing raises an error in every caller: the running one and those that wait."""
    async with QueuedRecogniser(engine, queue_size=1) as recogniser:
        tasks = [await _busy(engine, recogniser)]
        tasks += [_ask(recogniser, label) for label in (1, 2, 3)]
        await loop_turns(10)
        asyncio.get_running_loop().call_later(0.05, engine.release)
    for task in tasks:
        with pytest.raises(RecogniserError, match=r"closed|not running"):
            await task
    with pytest.raises(RecogniserError, match="not running"):
        await recogniser.recognise(RecognitionRequest(_sound(1)))


async def test_a_careful_second_hearing_never_delays_finished_speech(engine: FakeEngine) -> None:
    """A careful request is refused while finished speech waits, waits behind what comes later, and is then served
    carefully.
    """
    async with QueuedRecogniser(engine) as recogniser:
        busy = await _busy(engine, recogniser)
        careful = asyncio.create_task(recogniser.recognise(RecognitionRequest(_sound(1), speaker_id=1, careful=True)))
        await loop_turns(10)
        final = _ask(recogniser, 2, speaker=2)
        await loop_turns(10)
        with pytest.raises(RecogniserOverloadedError, match="Finished speech"):
            await recogniser.recognise(RecognitionRequest(_sound(3), speaker_id=3, careful=True))
        engine.release()
        await asyncio.gather(busy, careful, final)
    assert engine.order == [99, 2, 1]
    assert engine.careful == [False, False, True]
    assert recogniser.figures.shed == 1


@pytest.mark.parametrize(("waited_s", "order"), [(CERTAIN_AFTER_S, [99, 2, 1, 3]), (1.0, [99, 2, 3, 1])])
async def test_a_guess_that_nobody_takes_back_is_finished_speech(waited_s: float, order: list[int]) -> None:
    """An interim whose confirmation never came has its turn all the same, while finished speech goes on to come."""
    engine, now = FakeEngine(held=True), [0.0]
    async with QueuedRecogniser(engine, monotonic=lambda: now[0]) as recogniser:
        tasks = [await _busy(engine, recogniser), _ask(recogniser, 1, speaker=1, interim=True)]
        await loop_turns(10)
        tasks += [_ask(recogniser, label, speaker=2) for label in (2, 3)]
        await loop_turns(10)
        now[0] = waited_s
        engine.release()
        await asyncio.gather(*tasks)
    assert engine.order == order


async def test_what_waits_and_is_of_like_length_is_computed_together(engine: FakeEngine) -> None:
    """Four wait when the model is free, of which three are of one length; each caller gets its own text."""
    async with QueuedRecogniser(engine, batch_size=4) as recogniser:
        tasks = [await _busy(engine, recogniser)]
        tasks += [_ask(recogniser, label, speaker=label) for label in (1, 2)]
        tasks.append(
            asyncio.create_task(recogniser.recognise(RecognitionRequest(np.full(160_000, 3, np.int16), speaker_id=3)))
        )
        tasks.append(_ask(recogniser, 4, speaker=4))
        await loop_turns(10)
        engine.release()
        assert [heard.text for heard in await asyncio.gather(*tasks)] == ["99", "1", "2", "3", "4"]
    assert engine.batches == [1, 3, 1]
    assert engine.order == [99, 1, 2, 4, 3]
    assert recogniser.figures.completed == 5


async def test_a_recognition_that_fails_costs_nobody_else_the_text(engine: FakeEngine) -> None:
    """What fails together is computed alone."""
    async with QueuedRecogniser(engine, batch_size=4) as recogniser:
        tasks = [await _busy(engine, recogniser), *(_ask(recogniser, label, speaker=label) for label in (1, -1, 2))]
        await loop_turns(10)
        engine.release()
        heard = await asyncio.gather(*tasks, return_exceptions=True)
    assert [each.text for each in heard if not isinstance(each, BaseException)] == ["99", "1", "2"]
    assert [type(each) for each in heard if isinstance(each, BaseException)] == [RecogniserError]
    assert (recogniser.figures.completed, recogniser.figures.failed) == (3, 1)
