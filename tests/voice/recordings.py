"""Recorded and synthetic sound for tests, as mono int16 at 16 kHz. PyAV reads the recordings."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np

from voice.audio import LISTEN_RATE_HZ, Pcm

HELLO = Path(__file__).resolve().parents[2] / "rehearsal" / "scenarios" / "hello"
# The words of the bundled recording.
BICYCLE_TEXT = "I bought a green bicycle at the market this morning."


def read_recording(path: Path) -> Pcm:
    resampler = av.AudioResampler(format="s16", layout="mono", rate=LISTEN_RATE_HZ)
    with av.open(str(path)) as container:
        frames = [out for frame in container.decode(audio=0) for out in resampler.resample(frame)]
        frames.extend(resampler.resample(None))
    return np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames]).astype(np.int16)


def bicycle() -> Pcm:
    """Return a recording of somebody who says `BICYCLE_TEXT`."""
    return read_recording(HELLO / "2-ada.ogg")


def silence(seconds: float) -> Pcm:
    return np.zeros(round(seconds * LISTEN_RATE_HZ), dtype=np.int16)


def voiced(seconds: float, *, level: float = 0.3, hz: float = 200.0) -> Pcm:
    """Return a tone, which `tests.fakes.vad` takes for speech. `level` is the peak, relative to full scale."""
    times = np.arange(round(seconds * LISTEN_RATE_HZ)) / LISTEN_RATE_HZ
    return (np.sin(2 * np.pi * hz * times) * level * 32_767).astype(np.int16)
