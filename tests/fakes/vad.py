"""Voice activity detection without a model: loud sound counts as speech."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voice.audio import INT16_FULL_SCALE
from voice.listening.vad import WINDOW_SAMPLES, WindowRun


class LoudnessVad:
    """A `SpeechProbability` for tests. It counts the windows it has scored."""

    def __init__(self, *, speech_rms: float = 0.001) -> None:
        self._speech_rms = speech_rms
        self.windows_scored = 0

    def score(self, runs: Sequence[WindowRun]) -> list[list[float]]:
        """See `SpeechProbability.score`."""
        assert len({id(run.state) for run in runs}) == len(runs), "one run per state in a call"
        answer = []
        for run in runs:
            windows = run.pcm.reshape(-1, WINDOW_SAMPLES).astype(np.float64) / INT16_FULL_SCALE
            self.windows_scored += len(windows)
            loudness = np.sqrt((windows**2).mean(axis=1))
            answer.append([0.95 if rms >= self._speech_rms else 0.05 for rms in loudness])
        return answer
