"""Voice activity: the probability that a window of sound contains speech. The interface for callers, and Silero behind
it.

The model is recurrent, so every speaker has a `VadState`. One call takes the windows of several speakers. The model
file in the recogniser's wheel scores one speaker at a time. The other file scores several speakers together, which
halves the cost in a busy room. Callers see no difference.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from voice.audio import INT16_FULL_SCALE, LISTEN_RATE_HZ, Pcm
from voice.errors import VoiceError
from voice.listening.onnx_model import open_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnxruntime
    from numpy.typing import NDArray


# Silero v6's input at 16 kHz: a window of 32 ms, preceded by the last 64 samples of the previous window.
WINDOW_SAMPLES = 512
CONTEXT_SAMPLES = 64
HIDDEN_SIZE = 128
_WHAT = "voice-activity model"


class VadError(VoiceError):
    """The voice-activity model's file is missing or unknown."""


@dataclass(slots=True)
class VadState:
    """The model's memory of one speaker. Owned by the speaker's listener and changed by the model.

    `context`: the last samples of the previous window.
    """

    hidden: NDArray[np.float32] = field(default_factory=lambda: np.zeros(HIDDEN_SIZE, np.float32))
    cell: NDArray[np.float32] = field(default_factory=lambda: np.zeros(HIDDEN_SIZE, np.float32))
    context: Pcm = field(default_factory=lambda: np.zeros(CONTEXT_SAMPLES, np.int16))


@dataclass(frozen=True, slots=True)
class WindowRun:
    """Consecutive windows of one speaker: mono int16 at 16 kHz, n * 512 samples. Scoring advances `state`."""

    state: VadState
    pcm: Pcm


class SpeechProbability(Protocol):
    """Scores windows of sound. Called from one task at a time; must block only while it computes."""

    def score(self, runs: Sequence[WindowRun]) -> list[list[float]]:
        """Return, for each run, one probability (0.0-1.0) per window. A call may hold at most one run per state."""


class SileroVad:
    """Silero VAD v6 from the faster-whisper wheel (MIT). About 75 us a window on one thread.

    Holds one ONNX session for any number of speakers. Raises `VadError` if the file cannot be used.
    """

    def __init__(self, model_file: Path | None = None) -> None:
        remedy = "install faster-whisper again, in the version of uv.lock"
        file = model_file or _bundled_model()
        self._session = open_model(
            file, {"input", "h", "c"}, what=_WHAT, remedy=remedy, failure=VadError, keep_memory=False
        )

    def score(self, runs: Sequence[WindowRun]) -> list[list[float]]:
        """See `SpeechProbability.score`. Windows of one run go through the model in one call."""
        return [self._score_run(run) for run in runs]

    def _score_run(self, run: WindowRun) -> list[float]:
        if len(run.pcm) < WINDOW_SAMPLES:
            return []
        state = run.state
        # Each window is preceded by the end of the previous one.
        line = np.concatenate([state.context, run.pcm]).astype(np.float32) / INT16_FULL_SCALE
        windows = np.lib.stride_tricks.sliding_window_view(line, CONTEXT_SAMPLES + WINDOW_SAMPLES)[::WINDOW_SAMPLES]
        probabilities, hidden, cell = _outputs(
            self._session,
            input=np.ascontiguousarray(windows),
            h=state.hidden.reshape(1, 1, HIDDEN_SIZE),
            c=state.cell.reshape(1, 1, HIDDEN_SIZE),
        )
        state.hidden = hidden.reshape(HIDDEN_SIZE)
        state.cell = cell.reshape(HIDDEN_SIZE)
        state.context = run.pcm[-CONTEXT_SAMPLES:]
        return [float(probability) for probability in probabilities]


class StackedSileroVad:
    """Silero VAD v6 in the export that stacks speakers (MIT): 75 us a window alone, 35 us each with eight speakers.

    Holds one ONNX session for any number of speakers. Raises `VadError` if the file cannot be used.
    """

    def __init__(self, model_file: Path) -> None:
        remedy = "`roomtone models pull vad --again` brings the one that is meant"
        self._session = open_model(
            model_file, {"input", "state", "sr"}, what=_WHAT, remedy=remedy, failure=VadError, keep_memory=False
        )
        self._rate = np.array(LISTEN_RATE_HZ, dtype=np.int64)

    def score(self, runs: Sequence[WindowRun]) -> list[list[float]]:
        """See `SpeechProbability.score`. Each model call takes one window of every run."""
        counts = [len(run.pcm) // WINDOW_SAMPLES for run in runs]
        answers: list[list[float]] = [[] for _ in runs]
        for number in range(max(counts, default=0)):
            at = [index for index, count in enumerate(counts) if count > number]
            for index, probability in zip(at, self._step([runs[index] for index in at], number), strict=True):
                answers[index].append(probability)
        return answers

    def _step(self, runs: list[WindowRun], number: int) -> list[float]:
        """Score window `number` of each run, and advance the states."""
        states = [run.state for run in runs]
        start = number * WINDOW_SAMPLES
        windows = [run.pcm[start : start + WINDOW_SAMPLES] for run in runs]
        # One row for each speaker. To join all rows at once costs half as much as to stack them.
        rows = [part for state, window in zip(states, windows, strict=True) for part in (state.context, window)]
        sound = np.concatenate(rows).astype(np.float32).reshape(len(runs), CONTEXT_SAMPLES + WINDOW_SAMPLES)
        sound /= INT16_FULL_SCALE
        memory = np.concatenate([*(state.hidden for state in states), *(state.cell for state in states)])
        memory = memory.reshape(2, len(runs), HIDDEN_SIZE)
        probabilities, memory = _outputs(self._session, input=sound, state=memory, sr=self._rate)
        for index, state in enumerate(states):
            state.hidden, state.cell = memory[0, index], memory[1, index]
            state.context = windows[index][-CONTEXT_SAMPLES:]
        return [float(probability) for probability in probabilities[:, 0]]


def _outputs(session: onnxruntime.InferenceSession, **inputs: NDArray[Any]) -> list[NDArray[np.float32]]:
    """Return what a model makes of its inputs. Raises `VadError`."""
    try:
        outputs: list[NDArray[np.float32]] = session.run(None, inputs)
    except Exception as exc:
        raise VadError(f"The voice-activity model failed on sound of the shape {inputs['input'].shape}: {exc}") from exc
    return outputs


def _bundled_model() -> Path:
    """Return the model file inside the faster-whisper wheel, without importing the library."""
    found = importlib.util.find_spec("faster_whisper")
    if found is None or found.origin is None:
        raise VadError("The package faster-whisper, which brings the voice-activity model, is missing; install it.")
    return Path(found.origin).parent / "assets" / "silero_vad_v6.onnx"
