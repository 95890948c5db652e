"""Where the local model runs: on a CUDA device if one works, else on the CPU, also when CUDA fails later.

A device that is listed may still not work: a library is missing, the driver is older than the library, the memory is
taken. All this shows only when something is computed, so the model is tried with a moment of silence before it counts.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ctranslate2
import numpy as np
import structlog

from voice.asr.port import Recognition, RecognitionRequest
from voice.asr.worker import Engine
from voice.audio import LISTEN_RATE_HZ
from voice.circuit_breaker import Outage
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence, Sized


# Long enough to run the encoder and the decoder once.
_TRIAL = np.zeros(LISTEN_RATE_HZ // 2, np.int16)

# CUDA's messages may hold a list of paths.
MOST_CHARS = 200

_log: Any = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DevicePlacement:
    """The device and the number format of a model, as CTranslate2 names them."""

    device: str
    compute_type: str


CPU = DevicePlacement("cpu", "int8")
CUDA = DevicePlacement("cuda", "float16")


def cuda_device_count() -> int:
    """Return how many CUDA devices CTranslate2 can use here; 0 without a driver."""
    return int(ctranslate2.get_cuda_device_count())


def supported(place: DevicePlacement) -> DevicePlacement:
    """Return `place`. If the device (an old GPU) lacks the number format, use the fastest one it has."""
    if place.compute_type in ctranslate2.get_supported_compute_types(place.device):
        return place
    return DevicePlacement(place.device, "auto")


class CudaFallback(Engine):
    """An engine on the best device, and on the CPU for the rest of the process once CUDA has failed. The CPU
    then recognises the same sound, and everything after it.

    `open_engine` loads the model at a place; it raises `RecogniserError`. `cuda_devices`: how many there are; None: as
    many as CTranslate2 finds. `load` and recognition are called in the
    model's thread; `failure` (why CUDA is not used) and `place`, where the loaded model runs, may be
    read anywhere.
    """

    def __init__(
        self,
        open_engine: Callable[[DevicePlacement], Engine],
        *,
        cuda_devices: int | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_engine = open_engine
        self._cuda_devices = cuda_devices
        self._monotonic = monotonic
        self._engine: Engine | None = None
        self.failure: Outage | None = None
        self.place: DevicePlacement | None = None
        # Whether a computation on CUDA has begun and not ended.
        self._on_cuda = False

    def load(self) -> Engine:
        """Load the model where it works. Raises `RecogniserError`."""
        self._engine = None
        self._engine = self._loaded()
        return self

    def recognise_together(self, requests: Sequence[RecognitionRequest], *, others: Sized = ()) -> list[Recognition]:
        engine = self._engine = self._engine or self._loaded()
        place = self.place or CPU
        try:
            with self._computing(place):
                return engine.recognise_together(requests, others=others)
        except RecogniserError as error:
            if place == CPU or self.failure is not None or not is_cuda_failure(error):
                raise
            # Let go of the model on the GPU before the other one is loaded.
            self._engine = None
            del engine
            engine = self._engine = self._moved_to_cpu(str(error.__cause__))
        return engine.recognise_together(requests, others=others)

    def _loaded(self) -> Engine:
        if self.failure is None and self._on_cuda:
            # The thread that had the model hangs there and was given up; the next one would hang too.
            return self._moved_to_cpu("a computation did not end")
        devices = cuda_device_count() if self._cuda_devices is None else self._cuda_devices
        place = CUDA if self.failure is None and devices else CPU
        try:
            with self._computing(place):
                return self._opened(place)
        except RecogniserError as error:
            if place == CPU or not is_cuda_failure(error):
                raise
            return self._moved_to_cpu(str(error.__cause__))

    @contextmanager
    def _computing(self, place: DevicePlacement) -> Iterator[None]:
        """Let the next `load` know whether what is computed within is on CUDA and has not ended."""
        self._on_cuda = place != CPU
        try:
            yield
        finally:
            self._on_cuda = False

    def _moved_to_cpu(self, why: str) -> Engine:
        """Remember that CUDA failed, and return an engine on the CPU."""
        problem = RecogniserError(
            "CUDA failed ({why}). Make room in the memory of the GPU, or install CUDA's libraries "
            "(docs/operations.md, 'With an NVIDIA GPU'). Then restart the bot. To work without the "
            "GPU, set CUDA_VISIBLE_DEVICES=-1.",
            why=why[:MOST_CHARS],
        )
        engine = self._opened(CPU)
        self.failure = Outage(self._monotonic(), None, problem)
        _log.warning("recogniser_moved_to_cpu", problem=problem)
        return engine

    def _opened(self, place: DevicePlacement) -> Engine:
        """Load the model at a place. On CUDA it is tried, because much fails only there."""
        engine = self._open_engine(place)
        if place != CPU:
            engine.recognise(RecognitionRequest(_TRIAL, language="en"))
            if self.failure is not None:
                # This thread was given up meanwhile, and the next one has the model on the CPU.
                raise RecogniserError("The model needed too long to load.")
        self.place = place
        _log.info("recogniser_loaded", device=place.device, compute_type=place.compute_type)
        return engine


def is_cuda_failure(error: RecogniserError) -> bool:
    """Return whether CTranslate2 itself failed, which on a GPU is the GPU's fault: out of memory, no cuBLAS."""
    return isinstance(error.__cause__, RuntimeError | MemoryError)
