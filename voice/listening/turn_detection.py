"""End-of-turn detection: a model estimates from the sound whether the person has finished. Smart Turn v3.2 does so from
the last 8 seconds.

It judges intonation, not words. `endpointing` uses its answer. Without the model, or without an answer in time, silence
alone ends a turn.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import numpy as np

from voice.audio import INT16_FULL_SCALE, LISTEN_RATE_HZ, Pcm
from voice.listening.end_policy import GATE, GateLine
from voice.listening.endpointing import ENDPOINTING, window_count
from voice.listening.onnx_model import open_model
from voice.listening.vad import WINDOW_SAMPLES
from voice.quick_model import QuickModel, TurnModelError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


CONTEXT_S = 8
# Added to the variance before taking the root, as in the model's training.
VARIANCE_FLOOR = 1e-7
# By then most gates would be open (`end_policy.gate_s`), and waiting would only add to them.
ANSWER_TIMEOUT_S = 0.4
# The model was taught with sound that ends in so much silence, and is asked before as much has passed.
_TAUGHT_SILENCE_S = 0.2
_MORE_SILENCE = np.zeros(
    (window_count(_TAUGHT_SILENCE_S) - window_count(ENDPOINTING.tail_s)) * WINDOW_SAMPLES, np.int16
)


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


class TurnModelDetector(QuickModel[TurnModel, "Pcm", float]):
    """A `TurnEndDetector` for all rooms, with the model in its own thread. See `QuickModel`."""

    def __init__(
        self, load: Callable[[], TurnModel], line: GateLine = GATE, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.line = line
        super().__init__(
            load,
            lambda model, pcm: model.probability(pcm),
            what="end-of-turn model",
            thread_name="turn-model",
            answer_timeout_s=ANSWER_TIMEOUT_S,
            monotonic=monotonic,
        )
