"""Changes the sample rate of mono speech, with libswresample from PyAV."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from av import AudioFrame, AudioResampler

if TYPE_CHECKING:
    from voice.audio import Pcm


def resample(pcm: Pcm, from_hz: int, to_hz: int) -> Pcm:
    """Return mono int16 `pcm` of shape (n,) at `to_hz`. The length is n * to_hz / from_hz, within one frame."""
    if from_hz == to_hz or len(pcm) == 0:
        return pcm
    resampler = StreamResampler(from_hz, to_hz)
    return np.concatenate([resampler.feed(pcm), resampler.flush()])


class StreamResampler:
    """Resamples one stream of mono int16 from `from_hz` to `to_hz` without clicks between its pieces.

    The filter keeps a few samples until `flush`.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self._from_hz = from_hz
        self._to_hz = to_hz
        self._resampler = AudioResampler(format="s16", layout="mono", rate=to_hz)
        self._fed = False

    def feed(self, pcm: Pcm) -> Pcm:
        """Add the next piece, and return the samples that are ready."""
        if self._from_hz == self._to_hz or len(pcm) == 0:
            return pcm
        self._fed = True
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(pcm).reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = self._from_hz
        return _joined(self._resampler.resample(frame))

    def flush(self) -> Pcm:
        """End the stream, and return the remaining samples."""
        if not self._fed:
            return np.zeros(0, np.int16)
        return _joined(self._resampler.resample(None))


def _joined(frames: list[AudioFrame]) -> Pcm:
    if not frames:
        return np.zeros(0, np.int16)
    return np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames]).astype(np.int16, copy=False)
