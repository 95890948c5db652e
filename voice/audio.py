"""The shapes of sound that the rest of `voice` passes around: mono int16, and the two sample rates."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# Whisper and Silero both want 16 kHz; libopus decodes straight to it, so nothing here resamples what is heard.
LISTEN_RATE_HZ = 16_000
# What Discord carries.
DISCORD_RATE_HZ = 48_000
# One Opus frame as Discord sends it.
FRAME_MS = 20
LISTEN_FRAME_SAMPLES = LISTEN_RATE_HZ * FRAME_MS // 1000
DISCORD_FRAME_SAMPLES = DISCORD_RATE_HZ * FRAME_MS // 1000

# Mono, int16, shape (n,).
Pcm: TypeAlias = NDArray[np.int16]


def duration_s(pcm: Pcm, rate_hz: int = LISTEN_RATE_HZ) -> float:
    """Return how long `pcm` lasts, in seconds."""
    return len(pcm) / rate_hz
