"""Sounds for the tests of scripted people: tones between silences, as arrays, files and clips."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rehearsal.people.clip import RATE_HZ, Clip, encode_ogg


def silence(seconds: float, rate_hz: int = RATE_HZ) -> NDArray[np.int16]:
    """Return digital silence."""
    return np.zeros(int(seconds * rate_hz), np.int16)


def tone(seconds: float, rate_hz: int = RATE_HZ, *, level: float = 8000.0) -> NDArray[np.int16]:
    """Return a tone with a few harmonics, which counts as voice when measured by its energy."""
    turns = 2 * np.pi * 220.0 * np.arange(int(seconds * rate_hz)) / rate_hz
    harmonics = np.sin(turns) + np.sin(2 * turns) / 2 + np.sin(3 * turns) / 3
    return np.asarray(level * harmonics / 2, np.int16)


def spoken(*, lead_s: float = 0.2, voice_s: float = 0.6, tail_s: float = 0.3) -> NDArray[np.int16]:
    """Return a tone with silence before and after it, as 48 kHz mono."""
    return np.concatenate([silence(lead_s), tone(voice_s), silence(tail_s)])


def write_wav(path: Path, pcm: NDArray[np.int16], rate_hz: int = RATE_HZ, channels: int = 1) -> Path:
    """Write a 16-bit WAV file. With two channels, both get the same sound."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(np.repeat(pcm, channels).astype("<i2").tobytes())
    return path


def ogg_of(pcm: NDArray[np.int16]) -> bytes:
    """Return 48 kHz mono sound as an Ogg/Opus file."""
    return encode_ogg(iter([pcm]))


def clip_of(folder: Path, *, lead_s: float = 0.1, voice_s: float = 0.5, tail_s: float = 0.1) -> Clip:
    """Return a short clip."""
    path = folder / "clip.ogg"
    path.write_bytes(ogg_of(spoken(lead_s=lead_s, voice_s=voice_s, tail_s=tail_s)))
    return Clip.load(path)
