"""End-of-turn detection: Smart Turn v3.2 estimates from the last 8 seconds whether the person has finished.

It judges intonation, not words. `endpointing` uses its answer. Without the model, or without an answer in time, silence
alone ends a turn.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import onnxruntime
import structlog

from voice.audio import INT16_FULL_SCALE, LISTEN_RATE_HZ
from voice.daemon_thread import LOAD_TIMEOUT_S, DaemonThread
from voice.errors import VoiceError
from voice.listening.mel import log_mel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from voice.audio import Pcm

CONTEXT_S = 8
# Added to the variance before taking the root, as in the model's training.
VARIANCE_FLOOR = 1e-7
# An answer takes 30 ms. Four people who pause at once get theirs within the 280 ms that an answer may take; a fifth
# would get a late one and therefore gets none.
MOST_WAITING = 4
# After this the fixed silence (0.7 s) is almost over, and waiting would only add to it.
ANSWER_TIMEOUT_S = 0.4
# An answer takes 30 ms, so one that takes this long hangs.
HANGS_AFTER_S = 5.0
# Seconds that the end waits for the answer that the model works on.
STOP_TIMEOUT_S = 1.0

_log: Any = structlog.get_logger()


class TurnModelError(VoiceError):
    """The end-of-turn model is missing or unknown. The operator must install it or turn it off."""


class TurnEndDetector(Protocol):
    """Estimates whether a turn is finished. Any number of tasks may call it."""

    async def judge(self, pcm: Pcm) -> float | None:
        """Return the probability (0-1) that the turn ends with `pcm` (mono int16, 16 kHz, ending in silence).

        Returns None if there is no answer in time, because of too many requests or a failed model. Never raises.
        """


class SmartTurn:
    """The model. Blocks while it computes (about 30 ms); used from one thread. Raises `TurnModelError`."""

    def __init__(self, model_file: Path) -> None:
        options = onnxruntime.SessionOptions()
        # A second thread does not help: the work is many small steps.
        options.inter_op_num_threads = 1
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                str(model_file), sess_options=options, providers=["CPUExecutionProvider"]
            )
            names = {node.name for node in self._session.get_inputs()}
        except Exception as exc:
            raise TurnModelError(
                f"The end-of-turn model {model_file} could not be read; `roomtone models pull turn` brings it."
            ) from exc
        if names != {"input_features"}:
            raise TurnModelError(
                f"The end-of-turn model {model_file} takes {sorted(names)} and not input_features; "
                "`roomtone models pull turn --again` brings the one that is meant."
            )

    def probability(self, pcm: Pcm) -> float:
        """Return the probability (0-1) that the turn is over at the end of `pcm`; only the last 8 s count."""
        sound = pcm[-CONTEXT_S * LISTEN_RATE_HZ :].astype(np.float32) / INT16_FULL_SCALE
        # Pad at the front, because the model expects the sound to end at the same place.
        whole = np.pad(sound, (CONTEXT_S * LISTEN_RATE_HZ - len(sound), 0))
        level = (whole - whole.mean()) / np.sqrt(whole.var() + VARIANCE_FLOOR)
        try:
            answer = self._session.run(None, {"input_features": log_mel(level)[None]})
        except Exception as exc:
            raise TurnModelError(f"The end-of-turn model failed: {exc}") from exc
        return float(answer[0][0, 0])


@dataclass(frozen=True, slots=True)
class TurnDetectorFigures:
    """Counts of requests. `unanswered`: dropped or too late. `failed`: the model failed, or hangs."""

    answered: int = 0
    unanswered: int = 0
    failed: int = 0


class SmartTurnDetector:
    """A `TurnEndDetector` for all rooms, with the model in its own thread. An async context manager.

    A model that hangs is asked nothing before it has come back: the requests would pile up, and each would delay the
    recognition of its pause by `ANSWER_TIMEOUT_S`.

    *Ownership*: it owns the thread. *Cancellation*: a cancelled request leaves the queue; if the model already works on
    it, the result is dropped.
    """

    def __init__(self, load: Callable[[], SmartTurn], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._monotonic = monotonic
        self._model: SmartTurn | None = None
        self._thread = DaemonThread("turn-model")
        self._waiting = 0
        # Since when the model works on one request; None: on none. Its thread sets it.
        self._busy_since: float | None = None
        self._failing_since: float | None = None
        self.figures = TurnDetectorFigures()

    async def __aenter__(self) -> Self:
        """Load the model. Raises `TurnModelError`."""
        self._thread.start()
        try:
            self._model = await self._thread.run(self._load, within_s=LOAD_TIMEOUT_S)
        except TimeoutError as exc:
            self._thread.close()
            raise TurnModelError(
                f"The end-of-turn model was not loaded within {LOAD_TIMEOUT_S:g} s: its disk hangs, or the machine is "
                "overloaded."
            ) from exc
        except BaseException:
            self._thread.close()
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._thread.stop(within_s=STOP_TIMEOUT_S)

    @property
    def failing_since(self) -> float | None:
        """Return since when the model has failed or hung, in monotonic seconds; None if it answered last."""
        return self._failing_since

    async def judge(self, pcm: Pcm) -> float | None:
        if self._hangs():
            self._on_failure(TurnModelError(f"The end-of-turn model has worked on one pause for {HANGS_AFTER_S:g} s."))
            return None
        if self._waiting >= MOST_WAITING:
            self.figures = replace(self.figures, unanswered=self.figures.unanswered + 1)
            return None
        self._waiting += 1
        try:
            answer = await self._thread.run(partial(self._probability, pcm), within_s=ANSWER_TIMEOUT_S)
        except TimeoutError:
            self.figures = replace(self.figures, unanswered=self.figures.unanswered + 1)
            return None
        except TurnModelError as exc:
            self._on_failure(exc)
            return None
        finally:
            self._waiting -= 1
        self.figures = replace(self.figures, answered=self.figures.answered + 1)
        self._failing_since = None
        return answer

    def _probability(self, pcm: Pcm) -> float:
        """Ask the model, in its thread."""
        assert self._model is not None, "entered before it is asked"
        self._busy_since = self._monotonic()
        try:
            return self._model.probability(pcm)
        finally:
            self._busy_since = None

    def _hangs(self) -> bool:
        busy_since = self._busy_since
        return busy_since is not None and self._monotonic() - busy_since > HANGS_AFTER_S

    def _on_failure(self, problem: TurnModelError) -> None:
        self.figures = replace(self.figures, failed=self.figures.failed + 1)
        if self._failing_since is None:
            self._failing_since = self._monotonic()
            # Log only once: from now on turns end by silence, and the figures count the rest.
            _log.warning("turn_model_failed", problem=problem)
