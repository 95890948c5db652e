"""Change the sample rate of mono speech, with libswresample out of PyAV."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from av import AudioFrame, AudioResampler

if TYPE_CHECKING:
    from voice.audio import Pcm


def to_rate(pcm: Pcm, from_hz: int, to_hz: int) -> Pcm:
    """Return mono int16 `pcm` of shape (n,) at `to_hz`; the length is n * to_hz / from_hz, give or take one frame."""
    if from_hz == to_hz or len(pcm) == 0:
        return pcm
    resampler = AudioResampler(format="s16", layout="mono", rate=to_hz)
    frame = AudioFrame.from_ndarray(np.ascontiguousarray(pcm).reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = from_hz
    frames = [*resampler.resample(frame), *resampler.resample(None)]
    return np.concatenate([part.to_ndarray().reshape(-1) for part in frames]).astype(np.int16, copy=False)
