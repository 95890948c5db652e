"""The audio format that all of `voice` uses: mono int16 PCM at one of two sample rates."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# Whisper and Silero both need 16 kHz; libopus decodes directly to it, so received sound is never resampled.
LISTEN_RATE_HZ = 16_000
# Discord's sample rate.
DISCORD_RATE_HZ = 48_000
# One Opus frame as Discord sends it.
FRAME_MS = 20
LISTEN_FRAME_SAMPLES = LISTEN_RATE_HZ * FRAME_MS // 1000
DISCORD_FRAME_SAMPLES = DISCORD_RATE_HZ * FRAME_MS // 1000

# Samples divided by it lie between -1 and 1, as models and measures of loudness take them.
INT16_FULL_SCALE = 32_768.0

# Mono, int16, shape (n,).
Pcm: TypeAlias = NDArray[np.int16]

# In the place of sound that is not kept, or was never there.
NO_SOUND: Pcm = np.zeros(0, np.int16)


def duration_s(pcm: Pcm) -> float:
    """Return how long heard sound lasts, in seconds."""
    return len(pcm) / LISTEN_RATE_HZ
