"""A speech model that fails or hangs is loaded again, after growing pauses and never without end, or on the CPU."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from structlog.typing import EventDict

from tests.fakes.brain import until
from tests.fakes.loop_time import pass_loop_time
from tests.fakes.recogniser import AnsweringEngine, FakeEngine, recognition
from voice.asr.placement import CudaFallback, DevicePlacement
from voice.asr.port import Recognition, RecognitionRequest
from voice.asr.reloading_model import (
    COMPUTE_TIMEOUT_S,
    FAILURES_BEFORE_RELOAD,
    LONGEST_PAUSE_S,
    MOST_LEFT_BEHIND,
    ReloadingModel,
)
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.worker import Engine
from voice.audio import duration_s
from voice.daemon_thread import LOAD_TIMEOUT_S
from voice.errors import RecogniserError, RecogniserHungError

FAILS = -1


class ModelBench:
    """A model over engines that the test hands out, on a clock that stands still. `outcomes`: of each load in turn,
    and the last one of all later ones.
    """

    def __init__(self, *outcomes: Engine | Exception) -> None:
        self.now = 0.0
        self.loads = 0
        self._outcomes = list(outcomes)
        self._engine: Engine | None = None
        self.model = ReloadingModel(cast("Any", SimpleNamespace(load=self._load)), monotonic=lambda: self.now)

    def _load(self) -> Engine:
        self.loads += 1
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        self._engine = outcome
        return outcome

    async def lose(self) -> None:
        """Let the model fail so often that it is to be loaded again."""
        for _ in range(FAILURES_BEFORE_RELOAD):
            with pytest.raises(RecogniserError, match="failed"):
                await self.hear(FAILS)

    async def hear_nothing(self) -> None:
        """Recognise a sound that the engine holds, or that is refused, and raise why."""
        hung = self._engine if self._is_computing else None
        hearing = asyncio.create_task(self.hear(1))
        await until(lambda: hearing.done() or (self._is_computing and self._engine is not hung))
        with pytest.MonkeyPatch.context() as patch:
            pass_loop_time(patch, COMPUTE_TIMEOUT_S)
            await hearing
        raise AssertionError("it was heard")

    @property
    def _is_computing(self) -> bool:
        return isinstance(self._engine, FakeEngine) and self._engine.started.is_set()

    async def hear(self, label: int) -> str:
        """Recognise one sound and return its text."""
        [heard] = await self.model.recognise_together([RecognitionRequest(np.full(160, label, np.int16), None, ())])
        return heard.text


async def test_recognitions_that_never_end_leave_few_models_behind(logs: list[EventDict]) -> None:
    """However often it is asked and however long the pauses are, no more than three models hang. Then only a restart
    helps, which the error, the outage and the log say; or one of them ends after all.
    """
    hanging = [FakeEngine(held=True) for _ in range(MOST_LEFT_BEHIND)]
    bench = ModelBench(*hanging, FakeEngine())
    await bench.model.load()
    for _ in range(10):
        with pytest.raises(RecogniserError):
            await bench.hear_nothing()
        bench.now += LONGEST_PAUSE_S
    assert bench.loads == MOST_LEFT_BEHIND == bench.model.left_behind
    left = [line["left_behind"] for line in logs if line["event"] == "recogniser_thread_left_behind"]
    assert left == [1, 2, 3]
    with pytest.raises(RecogniserError, match="3 attempts"):
        await bench.hear_nothing()
    outage = bench.model.outage
    assert outage is not None
    assert outage.retry_at is None
    assert "Restart the bot" in str(outage.problem)
    hanging[0].release()
    await until(lambda: bench.model.left_behind < MOST_LEFT_BEHIND)
    assert await bench.hear(5) == "5"
    assert bench.model.outage is None
    for engine in hanging:
        engine.release()
    await bench.model.close()


async def test_a_model_that_cannot_be_loaded_is_tried_after_growing_pauses() -> None:
    """The model is loaded at most once a pause, however many recognitions come; the error has the cause. For people the
    outage has a sentence without the path of the model.
    """
    gone = RecogniserError(
        "The speech model in /models/base cannot be read; get one with `roomtone models pull whisper`."
    )
    bench = ModelBench(FakeEngine(), gone)
    await bench.model.load()
    await bench.lose()
    loaded_at: list[float] = []
    while len(loaded_at) < 8:
        before = bench.loads
        with pytest.raises(RecogniserError, match="pull whisper"):
            await bench.hear_nothing()
        if bench.loads > before:
            loaded_at.append(bench.now)
        bench.now += 1
    pauses = [later - earlier for earlier, later in pairwise(loaded_at)]
    assert pauses == [10, 20, 40, 80, 160, 300, 300]
    outage = bench.model.outage
    assert outage is not None
    assert outage.retry_at == loaded_at[-1] + LONGEST_PAUSE_S
    assert "/models" not in str(outage.problem)
    assert not bench.model.is_loaded
    assert bench.model.left_behind == 0
    await bench.model.close()


async def test_a_success_forgets_the_failures() -> None:
    """Failures that were followed by a text do not add up: after each, the model is loaded again at once."""
    bench = ModelBench(*[FakeEngine() for _ in range(6)])
    await bench.model.load()
    for _ in range(5):
        await bench.lose()
        assert await bench.hear(4) == "4"
    assert bench.model.reloads == 5
    assert bench.model.outage is None
    await bench.model.close()


async def test_a_model_that_fails_on_every_sound_is_loaded_again_more_and_more_rarely() -> None:
    """Three failures in a row cost the model; the second model that is lost so is followed by a pause."""
    bench = ModelBench(FakeEngine())
    await bench.model.load()
    for _ in range(2):
        await bench.lose()
    with pytest.raises(RecogniserError, match=r"10 seconds."):
        await bench.hear(FAILS)
    assert bench.loads == 2
    assert bench.model.left_behind == 0
    await bench.model.close()


async def test_loading_that_hangs_is_left_behind_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that never finishes to load counts as one that never finishes to recognise."""
    gate, loads = threading.Event(), 0

    def load() -> Engine:
        nonlocal loads
        loads += 1
        if loads > 1:
            gate.wait()
        return FakeEngine()

    now = 0.0
    model = ReloadingModel(cast("Any", SimpleNamespace(load=load)), monotonic=lambda: now)
    await model.load()
    request = RecognitionRequest(np.full(160, FAILS, np.int16), None, ())
    for _ in range(10 + FAILURES_BEFORE_RELOAD):
        before = loads
        hearing = asyncio.create_task(model.recognise_together([request]))
        await until(lambda: hearing.done() or loads > before)  # noqa: B023
        pass_loop_time(monkeypatch, LOAD_TIMEOUT_S)
        with pytest.raises(RecogniserError):
            await hearing
        now += LONGEST_PAUSE_S
    assert loads == 1 + MOST_LEFT_BEHIND
    assert model.left_behind == MOST_LEFT_BEHIND
    gate.set()
    await until(lambda: not model.left_behind)
    await model.close()


@pytest.mark.parametrize(
    ("problem", "message"),
    [(RecogniserError("No model there."), "No model"), (OSError("disk gone"), "disk gone")],
)
async def test_a_model_that_cannot_be_loaded_at_the_start_is_an_error(problem: Exception, message: str) -> None:
    """The first load is tried once, and the operator sees why it failed."""
    bench = ModelBench(problem)
    with pytest.raises(RecogniserError, match=message):
        await bench.model.load()
    await bench.model.close()


SOUND = np.ones(16_000, np.int16)
NO_CUBLAS = "Library libcublas.so.12 is not found or cannot be loaded"
NO_MEMORY = "CUDA failed with error out of memory"


class Gpu:
    """What CTranslate2 does at each place. `fails`: the numbers of the calls on CUDA that raise, and why. `hangs_at`:
    the number of the call on CUDA that does not end before `gate` is set.
    """

    def __init__(
        self,
        fails: dict[int, Exception] | None = None,
        *,
        hangs_at: int = 0,
        loads: bool = True,
        cpu_loads: bool = True,
    ) -> None:
        self.hangs_at = hangs_at
        self.gate = threading.Event()
        self.fails = fails or {}
        self.loads = loads
        self.cpu_loads = cpu_loads
        self.opened: list[str] = []
        self.calls = 0

    def open(self, place: DevicePlacement) -> AnsweringEngine:
        if place.device == "cuda" and not self.loads:
            raise RecogniserError("The speech model cannot be read.") from RuntimeError(NO_MEMORY)
        if place.device == "cpu" and not self.cpu_loads:
            raise RecogniserError("The speech model cannot be read.")
        self.opened.append(place.device)
        return AnsweringEngine(partial(self._compute, place))

    def _compute(self, place: DevicePlacement, asked: RecognitionRequest) -> Recognition:
        if place.device == "cuda":
            self.calls += 1
            if self.calls == self.hangs_at:
                self.gate.wait()
            if (error := self.fails.get(self.calls)) is not None:
                raise RecogniserError("The speech model failed.") from error
        return recognition(f"heard on {place.device}", duration_s=duration_s(asked.pcm))

    def fallback(self, *, devices: int = 1) -> CudaFallback:
        return CudaFallback(self.open, cuda_devices=devices, monotonic=lambda: 100.0)


@pytest.mark.parametrize(("devices", "device", "compute_type"), [(0, "cpu", "int8"), (2, "cuda", "float16")])
def test_a_working_gpu_is_used_and_told(devices: int, device: str, compute_type: str, logs: list[EventDict]) -> None:
    """With a CUDA device that computes, the model runs there, and the log says where and in which format."""
    gpu = Gpu()
    engine = gpu.fallback(devices=devices).load()
    assert engine.recognise(RecognitionRequest(SOUND)).text == f"heard on {device}"
    told = [(line["event"], line["device"], line["compute_type"]) for line in logs]
    assert told == [("recogniser_loaded", device, compute_type)]


@pytest.mark.parametrize("loads", [True, False])
def test_a_gpu_that_cannot_compute_is_found_at_the_start(loads: bool, logs: list[EventDict]) -> None:
    """A listed device whose libraries or memory are missing shows when it computes: the CPU takes over, with a plain
    sentence.
    """
    fallback = Gpu({1: RuntimeError(NO_CUBLAS)}, loads=loads).fallback()
    engine = fallback.load()
    assert engine.recognise(RecognitionRequest(SOUND)).text == "heard on cpu"
    assert fallback.failure is not None
    sentence = str(fallback.failure.problem)
    assert sentence.startswith("CUDA failed (")
    page = (Path(__file__).parents[3] / "docs/operations.md").read_text("utf-8")
    assert "(docs/operations.md, 'With an NVIDIA GPU')" in sentence
    assert "### With an NVIDIA GPU" in page
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["recogniser_moved_to_cpu"]


async def test_memory_that_runs_out_in_the_evening_loses_no_sound() -> None:
    """When CUDA fails in the middle, the same sound is recognised on the CPU, and so is everything after it. The model
    is not tried on CUDA again, also when it is loaded again.
    """
    gpu = Gpu({3: RuntimeError(NO_MEMORY)})
    fallback = gpu.fallback()
    async with QueuedRecogniser(fallback) as recogniser:
        heard = [(await recogniser.recognise(RecognitionRequest(SOUND, language="en"))).text for _ in range(4)]
        assert recogniser.figures.failed == 0
    assert heard == ["heard on cuda", "heard on cpu", "heard on cpu", "heard on cpu"]
    assert fallback.failure is not None
    assert fallback.failure.since == 100.0
    assert NO_MEMORY in str(fallback.failure.problem)
    assert fallback.load().recognise(RecognitionRequest(SOUND)).text == "heard on cpu"


@pytest.mark.parametrize("hangs_at", [2, 3])
async def test_a_gpu_that_hangs_is_left_for_the_cpu(hangs_at: int) -> None:
    """A model whose computation on CUDA never ends is loaded again on the CPU, not before the same wall."""
    gpu = Gpu(hangs_at=hangs_at)
    fallback = gpu.fallback()
    async with QueuedRecogniser(fallback) as recogniser:
        for _ in range(hangs_at - 2):
            assert (await recogniser.recognise(RecognitionRequest(SOUND, language="en"))).text == "heard on cuda"
        hanging = asyncio.create_task(recogniser.recognise(RecognitionRequest(SOUND, language="en")))
        await until(lambda: gpu.calls == hangs_at)
        with pytest.MonkeyPatch.context() as patch:
            pass_loop_time(patch, COMPUTE_TIMEOUT_S)
            with pytest.raises(RecogniserHungError):
                await hanging
        assert (await recogniser.recognise(RecognitionRequest(SOUND, language="en"))).text == "heard on cpu"
        assert recogniser.model.outage is None
    assert fallback.failure is not None
    assert "a computation did not end" in str(fallback.failure.problem)
    gpu.gate.set()


def test_an_error_that_is_not_cudas_stays_one() -> None:
    """An unknown language is the caller's mistake; it moves nothing to the CPU."""
    gpu = Gpu({2: ValueError("unknown language")})
    fallback = gpu.fallback()
    engine = fallback.load()
    with pytest.raises(RecogniserError, match="failed"):
        engine.recognise(RecognitionRequest(SOUND))
    assert engine.recognise(RecognitionRequest(SOUND)).text == "heard on cuda"
    assert fallback.failure is None
