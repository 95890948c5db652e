"""Finds where the voice in a recording begins and ends, by its energy.

Latency is measured from the acoustic end of speech, not from the end of the file. This works for clean recordings and
for the bot's own voice. It is not a voice activity detector for a live channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# This is 32 dB under the loud frames. It is below a word-final "s" or "f" of the Kokoro and LibriSpeech voices that we
# measured, and above the breath and room noise that follow it.
RELATIVE_FLOOR = 0.025
# This is -54 dBFS. Anything softer counts as silence in every recording.
ABSOLUTE_FLOOR_RMS = 65.0
# Speech lasts for several frames. A single loud frame is a click where the recording was cut.
RUN_FRAMES = 2


@dataclass(frozen=True, slots=True)
class VoicedBounds:
    """The first and the last frame (inclusive) that carry voice."""

    first: int
    last: int


def frame_rms(pcm: NDArray[np.int16], frame_samples: int) -> NDArray[np.float64]:
    """Return the RMS of each whole or partial frame of `pcm` (mono), on the int16 scale."""
    if not len(pcm):
        return np.zeros(0)
    short = -len(pcm) % frame_samples
    frames = np.pad(pcm.astype(np.float64), (0, short)).reshape(-1, frame_samples)
    return np.asarray(np.sqrt(np.mean(frames**2, axis=1)))


def voiced_frames(pcm: NDArray[np.int16], frame_samples: int) -> NDArray[np.bool_]:
    """Return for each frame of `pcm` (mono int16) whether it carries voice."""
    rms = frame_rms(pcm, frame_samples)
    if not len(rms):
        return np.zeros(0, np.bool_)
    # The 95th percentile counts as "loud", because the maximum may be a single plosive.
    floor = max(ABSOLUTE_FLOOR_RMS, RELATIVE_FLOOR * float(np.percentile(rms, 95)))
    loud = rms > floor
    return np.asarray(loud & (np.roll(loud, 1) | np.roll(loud, -1)) if len(loud) >= RUN_FRAMES else loud)


def voiced_bounds(pcm: NDArray[np.int16], frame_samples: int) -> VoicedBounds | None:
    """Return where the voice in `pcm` (mono int16) begins and ends, or None if there is no voice."""
    voiced = np.flatnonzero(voiced_frames(pcm, frame_samples))
    if not len(voiced):
        return None
    return VoicedBounds(int(voiced[0]), int(voiced[-1]))
