"""Finds where the pieces of an utterance end in its sound, by comparing it with the pieces spoken alone.

The same voice says the same words in both, so dynamic time warping over spectra finds each boundary. The cut is then
put at the quietest place near it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from voice.audio import Pcm

# A spectrum every 20 ms over 40 ms, in bands of equal width in pitch.
STEP_S, SPAN_S = 0.02, 0.04
BANDS = 24
LOWEST_HZ, HIGHEST_HZ = 100.0, 7_000.0
# A cut is at most this far from where the comparison puts it.
NEAR_S = 0.08


def cut_points(whole: Pcm, pieces: Sequence[Pcm], rate_hz: int) -> list[int]:
    """Return the sample of `whole` at which each piece but the last ends, in order."""
    alone = [_spectra(piece, rate_hz) for piece in pieces]
    heard = _spectra(whole, rate_hz)
    ends = np.cumsum([len(each) for each in alone])[:-1]
    matched = _warp(np.concatenate(alone), heard)
    loudness = heard.mean(axis=1)
    near = round(NEAR_S / STEP_S)
    cuts: list[int] = []
    for end in ends:
        at = int(matched[end])
        low = max(at - near, 1)
        quietest = low + int(np.argmin(loudness[low : at + near + 1]))
        cuts.append(round(quietest * STEP_S * rate_hz))
    return cuts


def _spectra(pcm: Pcm, rate_hz: int) -> NDArray[np.float64]:
    """Return the log energy of each band, shape (steps, BANDS), less its mean over the sound."""
    step, span = round(STEP_S * rate_hz), round(SPAN_S * rate_hz)
    padded = np.pad(pcm.astype(np.float64), (0, span))
    frames = np.lib.stride_tricks.sliding_window_view(padded, span)[::step] * np.hanning(span)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    hz = np.fft.rfftfreq(span, 1 / rate_hz)
    edges = np.geomspace(LOWEST_HZ, HIGHEST_HZ, BANDS + 1)
    bands = [power[:, (hz >= low) & (hz < max(high, low + 1.5 / SPAN_S))].sum(axis=1) for low, high in pairwise(edges)]
    return np.log(np.stack(bands, axis=1) + 1e4)


def _warp(alone: NDArray[np.float64], heard: NDArray[np.float64]) -> NDArray[np.int_]:
    """Return for each step of `alone` the step of `heard` that it corresponds to."""
    distance = np.sqrt(((alone[:, None, :] - heard[None, :, :]) ** 2).sum(axis=2))
    rows, columns = distance.shape
    cost = np.full((rows + 1, columns + 1), np.inf)
    cost[0, 0] = 0.0
    # Along a diagonal from the lower left to the upper right, no cell depends on another.
    for diagonal in range(rows + columns - 1):
        row = np.arange(max(0, diagonal - columns + 1), min(rows, diagonal + 1))
        column = diagonal - row
        best = np.minimum(np.minimum(cost[row, column], cost[row, column + 1]), cost[row + 1, column])
        cost[row + 1, column + 1] = distance[row, column] + best
    matched = np.zeros(rows, np.int_)
    at, to = rows, columns
    while at > 0 and to > 0:
        matched[at - 1] = to - 1
        move = int(np.argmin((cost[at - 1, to - 1], cost[at - 1, to], cost[at, to - 1])))
        at, to = (at - 1, to - 1) if move == 0 else (at - 1, to) if move == 1 else (at, to - 1)
    return matched
