"""The recogniser runs on a CUDA device that works, and moves to the CPU when CUDA fails, without losing a sound.

CTranslate2 is replaced at its boundary: an engine that raises what CTranslate2 raises. No GPU is needed.
"""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from structlog.testing import capture_logs

from tests.fakes.recogniser import AnsweringEngine, recognition
from voice.asr.placement import CudaFallback, DevicePlacement
from voice.asr.scheduler import QueuedRecogniser
from voice.audio import duration_s
from voice.errors import RecogniserError, RecogniserHungError

if TYPE_CHECKING:
    from voice.asr.port import Recognition
    from voice.asr.worker import RecognitionRequest

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
        return CudaFallback(self.open, cuda_devices=lambda: devices, monotonic=lambda: 100.0)


@pytest.mark.parametrize(("devices", "device", "compute_type"), [(0, "cpu", "int8"), (2, "cuda", "float16")])
def test_a_working_gpu_is_used_and_told(devices: int, device: str, compute_type: str) -> None:
    """With a CUDA device that computes, the model runs there, and the log says where and in which format."""
    gpu = Gpu()
    with capture_logs() as logs:
        engine = gpu.fallback(devices=devices).load()
    assert engine.recognise(SOUND).text == f"heard on {device}"
    told = [(line["event"], line["device"], line["compute_type"]) for line in logs]
    assert told == [("recogniser_loaded", device, compute_type)]


@pytest.mark.parametrize("loads", [True, False])
def test_a_gpu_that_cannot_compute_is_found_at_the_start(loads: bool) -> None:
    """A listed device whose libraries or memory are missing shows when it computes: the CPU takes over, with a plain
    sentence.
    """
    fallback = Gpu({1: RuntimeError(NO_CUBLAS)}, loads=loads).fallback()
    with capture_logs() as logs:
        engine = fallback.load()
    assert engine.recognise(SOUND).text == "heard on cpu"
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
    async with QueuedRecogniser(fallback.load) as recogniser:
        heard = [(await recogniser.recognise(SOUND, language="en")).text for _ in range(4)]
        assert recogniser.figures.failed == 0
    assert heard == ["heard on cuda", "heard on cpu", "heard on cpu", "heard on cpu"]
    assert fallback.failure is not None
    assert fallback.failure.since == 100.0
    assert NO_MEMORY in str(fallback.failure.problem)
    assert fallback.load().recognise(SOUND).text == "heard on cpu"


@pytest.mark.parametrize("hangs_at", [2, 3])
async def test_a_gpu_that_hangs_is_left_for_the_cpu(hangs_at: int) -> None:
    """A model whose computation on CUDA never ends is loaded again on the CPU, not before the same wall."""
    gpu = Gpu(hangs_at=hangs_at)
    fallback = gpu.fallback()
    async with QueuedRecogniser(fallback.load) as recogniser:
        for _ in range(hangs_at - 2):
            assert (await recogniser.recognise(SOUND, language="en")).text == "heard on cuda"
        recogniser._model._compute_timeout_s = 0.01
        with pytest.raises(RecogniserHungError):
            await recogniser.recognise(SOUND, language="en")
        recogniser._model._compute_timeout_s = 60.0
        assert (await recogniser.recognise(SOUND, language="en")).text == "heard on cpu"
        assert recogniser.outage is None
    assert fallback.failure is not None
    assert "a computation did not end" in str(fallback.failure.problem)
    gpu.gate.set()


def test_an_error_that_is_not_cudas_stays_one() -> None:
    """An unknown language is the caller's mistake; it moves nothing to the CPU."""
    gpu = Gpu({2: ValueError("unknown language")})
    fallback = gpu.fallback()
    engine = fallback.load()
    with pytest.raises(RecogniserError, match="The speech model failed"):
        engine.recognise(SOUND)
    assert engine.recognise(SOUND).text == "heard on cuda"
    assert fallback.failure is None
