"""The log-mel spectrogram in Whisper's format: 80 bands, one column for each 10 ms.

It uses numpy only, because this package may not import the recogniser's library. Steps and constants are those of
Whisper's feature extractor; models trained on it need the same digits.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from voice.audio import LISTEN_RATE_HZ

if TYPE_CHECKING:
    from numpy.typing import NDArray

BANDS = 80
# 25 ms under a Hann window, every 10 ms.
FRAME_SAMPLES = 400
HOP_SAMPLES = 160
# Slaney's mel scale: linear to 1 kHz, then 27 steps for each factor of 6.4.
LINEAR_HZ_PER_MEL = 200.0 / 3
LOG_FROM_HZ = 1000.0
LOG_FROM_MEL = 15.0
LOG_STEP = np.log(6.4) / 27
POWER_FLOOR = 1e-10
# Values eight decades (80 dB) below the loudest count as silence.
DYNAMIC_RANGE = 8.0


def log_mel(sound: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the spectrogram of `sound` (mono, 16 kHz): shape (80, samples / 160), about -1 to 1."""
    # Double precision, like the original: a difference in the last digit changes an int8 model's answer by up to 0.02.
    padded = np.pad(sound.astype(np.float64), FRAME_SAMPLES // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME_SAMPLES)[::HOP_SAMPLES]
    # Whisper leaves the last column out.
    spectrum = np.fft.rfft(frames[:-1] * _window(), axis=-1)
    power = spectrum.real**2 + spectrum.imag**2
    picture = np.log10(np.maximum(_filters() @ power.T, POWER_FLOOR))
    picture = np.maximum(picture, picture.max() - DYNAMIC_RANGE)
    scaled: NDArray[np.float32] = ((picture + 4.0) / 4.0).astype(np.float32)
    return scaled


@cache
def _window() -> NDArray[np.float64]:
    # A periodic window: a symmetric one with one more sample, without its last.
    return np.hanning(FRAME_SAMPLES + 1)[:-1]


@cache
def _filters() -> NDArray[np.float64]:
    """Return the triangular bands, shape (80, 201): equal in area and evenly spaced in mels."""
    spectrum_hz = np.linspace(0.0, LISTEN_RATE_HZ / 2, FRAME_SAMPLES // 2 + 1)
    top = LOG_FROM_MEL + np.log(LISTEN_RATE_HZ / 2 / LOG_FROM_HZ) / LOG_STEP
    edges = _hertz(np.linspace(0.0, top, BANDS + 2))
    widths = np.diff(edges)
    distance = edges[:, None] - spectrum_hz[None, :]
    rising = -distance[:-2] / widths[:-1, None]
    falling = distance[2:] / widths[1:, None]
    bands = np.maximum(0.0, np.minimum(rising, falling))
    bands *= (2.0 / (edges[2:] - edges[:-2]))[:, None]
    return bands


def _hertz(mels: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    linear = mels * LINEAR_HZ_PER_MEL
    logarithmic = LOG_FROM_HZ * np.exp(LOG_STEP * (mels - LOG_FROM_MEL))
    return np.where(mels < LOG_FROM_MEL, linear, logarithmic)
