"""End-of-turn detection: a model estimates from the sound whether the person has finished. Smart Turn v3.2 does so from
the last 8 seconds.

It judges intonation, not words. `endpointing` uses its answer. Without the model, or without an answer in time, silence
alone ends a turn.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import structlog

from voice.audio import INT16_FULL_SCALE, LISTEN_RATE_HZ, Pcm
from voice.daemon_thread import LOAD_TIMEOUT_S, DaemonThread
from voice.errors import VoiceError
from voice.listening.end_policy import GATE, GateLine
from voice.listening.endpointing import ENDPOINTING, window_count
from voice.listening.onnx_model import open_model
from voice.listening.vad import WINDOW_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType


CONTEXT_S = 8
# Added to the variance before taking the root, as in the model's training.
VARIANCE_FLOOR = 1e-7
# By then most gates would be open (`end_policy.gate_s`), and waiting would only add to them.
ANSWER_TIMEOUT_S = 0.4
# Answers take about 30 ms. So many who pause at once get theirs in time; one more would get a late one and therefore
# gets none.
MOST_WAITING = 4
# An answer that takes this long hangs.
HANGS_AFTER_S = 5.0
# Seconds that the end waits for the answer that the model works on.
STOP_TIMEOUT_S = 1.0
# The model was taught with sound that ends in so much silence, and is asked before as much has passed.
_TAUGHT_SILENCE_S = 0.2
_MORE_SILENCE = np.zeros(
    (window_count(_TAUGHT_SILENCE_S) - window_count(ENDPOINTING.tail_s)) * WINDOW_SAMPLES, np.int16
)


_log: Any = structlog.get_logger()


class TurnModelError(VoiceError):
    """The end-of-turn model is missing, unknown or fails. The operator must install it or turn it off."""


class TurnEndDetector(Protocol):
    """Estimates whether a turn is finished. Any number of tasks may call it. `line`: of its model."""

    line: GateLine

    async def judge(self, pcm: Pcm) -> float | None:
        """Return the probability (0-1) that the turn ends with `pcm` (mono int16, 16 kHz, ending in silence).

        Returns None if there is no answer in time, because of too many requests or a failed model. Never raises.
        """


class TurnModel(Protocol):
    """An end-of-turn model. Blocks while it computes; used from one thread. Raises `TurnModelError`.

    `line`: how its probabilities set the gate. `benchmarks.endpoint.fit` chooses it.
    """

    line: GateLine

    def __init__(self, model_file: Path) -> None: ...

    def probability(self, pcm: Pcm) -> float:
        """Return the probability (0-1) that the turn is over at the end of `pcm`."""


class SmartTurn:
    """The `TurnModel` of Smart Turn, which takes about 30 ms."""

    line = GATE

    def __init__(self, model_file: Path) -> None:
        # Imported here, because the library takes a second to load.
        from faster_whisper.feature_extractor import FeatureExtractor

        # The model was taught with Whisper's spectrograms.
        self._spectrogram = FeatureExtractor(chunk_length=CONTEXT_S)
        self._session = open_model(
            model_file,
            {"input_features"},
            what="end-of-turn model",
            remedy="`roomtone models pull turn --again` brings the one that is meant",
            failure=TurnModelError,
        )

    def probability(self, pcm: Pcm) -> float:
        """Return the probability (0-1) that the turn is over at the end of `pcm`; only the last 8 s count."""
        heard = np.concatenate([pcm, _MORE_SILENCE])
        sound = heard[-CONTEXT_S * LISTEN_RATE_HZ :].astype(np.float32) / INT16_FULL_SCALE
        # Pad at the front, because the model expects the sound to end at the same place.
        whole = np.pad(sound, (CONTEXT_S * LISTEN_RATE_HZ - len(sound), 0))
        level = (whole - whole.mean()) / np.sqrt(whole.var() + VARIANCE_FLOOR)
        try:
            answer = self._session.run(None, {"input_features": self._spectrogram(level, padding=0)[None]})
        except Exception as exc:
            raise TurnModelError(f"The end-of-turn model failed: {exc}") from exc
        return float(answer[0][0, 0])


class TurnModelDetector:
    """A `TurnEndDetector` for all rooms, with the model in its own thread. An async context manager.

    `load` returns the model; it blocks, and raises `TurnModelError`. An answer that comes late is of no use to anybody,
    so requests never pile up before a model that is slow, fails or hangs. One that hangs is asked nothing before it has
    come back: each request would delay what waits for it by `ANSWER_TIMEOUT_S`.

    *Ownership*: it owns the thread. *Cancellation*: a cancelled request leaves the queue; if the model already works on
    it, the result is dropped.
    """

    def __init__(
        self, load: Callable[[], TurnModel], line: GateLine = GATE, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.line = line
        self._load = load
        self._monotonic = monotonic
        self._model: TurnModel | None = None
        self._thread = DaemonThread("turn-model")
        self._waiting = 0
        # Since when the model works on one request; None: on none.
        self._busy_since: float | None = None
        # Since when the model has failed or hung, in monotonic seconds; None if it answered last.
        self.failing_since: float | None = None

    async def __aenter__(self) -> Self:
        """Load the model. Raises `TurnModelError`."""
        try:
            self._model = await self._thread.run(self._load, within_s=LOAD_TIMEOUT_S)
        except BaseException as exc:
            self._thread.close()
            if not isinstance(exc, TimeoutError):
                raise
            raise TurnModelError(
                f"The end-of-turn model was not loaded within {LOAD_TIMEOUT_S:g} s: its disk hangs, or the machine is "
                "overloaded."
            ) from exc
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._thread.stop(within_s=STOP_TIMEOUT_S)

    async def judge(self, pcm: Pcm) -> float | None:
        """See `TurnEndDetector.judge`."""
        # The model's thread sets it.
        busy_since = self._busy_since
        if busy_since is not None and self._monotonic() - busy_since > HANGS_AFTER_S:
            self._on_failure(TurnModelError(f"The model has worked on one pause for {HANGS_AFTER_S:g} s."))
            return None
        if self._waiting >= MOST_WAITING:
            return None
        self._waiting += 1
        try:
            answer = await self._thread.run(partial(self._ask, pcm), within_s=ANSWER_TIMEOUT_S)
        except TimeoutError:
            return None
        except TurnModelError as exc:
            self._on_failure(exc)
            return None
        finally:
            self._waiting -= 1
        self.failing_since = None
        return answer

    def _ask(self, pcm: Pcm) -> float:
        """Ask the model, in its thread."""
        assert self._model is not None, "entered before it is asked"
        self._busy_since = self._monotonic()
        try:
            return self._model.probability(pcm)
        finally:
            self._busy_since = None

    def _on_failure(self, problem: TurnModelError) -> None:
        if self.failing_since is None:
            self.failing_since = self._monotonic()
            # Log only once: from now on pauses are judged without it, and the health page says so.
            _log.warning("turn_model_failed", problem=problem)
