"""Mixes several people's sound into one track, as a microphone in the room would record it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voice.audio import Pcm

# Longer pauses between two sounds are shortened to this.
LONGEST_PAUSE_S = 0.5


def mix_speakers(sounds: Sequence[tuple[float, Pcm]], rate_hz: int) -> Pcm:
    """Return `sounds` (start in seconds, mono int16) as one track. Samples that are too loud are clipped.

    Silence in which nobody speaks is shortened to `LONGEST_PAUSE_S`.
    """
    if not sounds:
        return np.zeros(0, np.int16)
    ordered = sorted(sounds, key=lambda each: each[0])
    first = ordered[0][0]
    placed: list[tuple[int, Pcm]] = []
    until, cut = 0, 0
    for began, pcm in ordered:
        at = round((began - first) * rate_hz) - cut
        over = at - until - round(LONGEST_PAUSE_S * rate_hz)
        if over > 0 and placed:
            cut += over
            at -= over
        placed.append((at, pcm))
        until = max(until, at + len(pcm))
    room = np.zeros(until, np.int32)
    for at, pcm in placed:
        room[at : at + len(pcm)] += pcm
    return np.clip(room, -32768, 32767).astype(np.int16)
