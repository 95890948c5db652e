"""Sentences of synthetic voices at one level, and the noise of a room: what sets of made recordings consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bot.models.voices import VOICES
from rehearsal.people.clip import FRAME_SAMPLES, RATE_HZ, frame_rms, voiced_bounds
from voice.errors import SynthesisError
from voice.speaking.embedded import EmbeddedModel, VoiceManner
from voice.speaking.kokoro import KOKORO
from voice.speaking.port import Synthesizer, synthesize_all
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AsyncExitStack

    from numpy.typing import NDArray

    from bot.settings import ModelsSettings
    from voice.audio import Pcm

# Voiced frames get -22 dBFS.
SPEECH_RMS = 2600.0
# How much of a room's noise stays from one sample to the next: most of its power is below 1 kHz.
NOISE_MEMORY = 0.97
FADE_S = 0.01
# A busy machine may need longer for a piece than the voice allows for a sentence that somebody waits for.
ATTEMPTS = 4


async def kokoro_voices(
    stack: AsyncExitStack, models: ModelsSettings, speeds: Mapping[str, float]
) -> dict[str, Synthesizer]:
    """Return Kokoro's voices of these names, which say English at these speeds. `stack` closes them.

    Raises `SynthesisError` if they are not installed.
    """
    folder = next(voice.folder(models.directory) for voice in VOICES if voice.engine is KOKORO)
    kokoro = await stack.enter_async_context(EmbeddedModel.open(KOKORO, folder))
    return {
        name: await kokoro.voice(name if name[0] in "ab" else f"{name}@a", VoiceManner(speed))
        for name, speed in speeds.items()
    }


async def speak_evenly(voice: Synthesizer, text: str, pitch: float = 1.0) -> Pcm:
    """Return a text as sound at 48 kHz and the common level, trimmed to its voice. Raises `SynthesisError`."""
    for attempt in range(ATTEMPTS):
        try:
            speech = await synthesize_all(voice, text)
            break
        except SynthesisError:
            if attempt == ATTEMPTS - 1:
                raise
    return evenly(resample(speech.pcm, round(speech.rate_hz * pitch), RATE_HZ))


def evenly(pcm: Pcm) -> Pcm:
    """Return sound at 48 kHz at the common level, trimmed to its voice."""
    pcm = trimmed(pcm)
    rms = frame_rms(pcm, FRAME_SAMPLES)
    loud = float(np.sqrt(np.mean(rms[rms > 0.1 * rms.max()] ** 2)))
    return as_pcm(pcm.astype(np.float64) * (SPEECH_RMS / loud))


def trimmed(pcm: Pcm) -> Pcm:
    """Return `pcm` without the silence around its voice, faded at both ends so that a cut does not click."""
    bounds = voiced_bounds(pcm, FRAME_SAMPLES)
    if bounds is None:
        raise LookupError("a voice was silent where it should have spoken")
    kept = pcm[bounds.first * FRAME_SAMPLES : (bounds.last + 1) * FRAME_SAMPLES].astype(np.float64)
    fade = np.linspace(0.0, 1.0, round(FADE_S * RATE_HZ))
    kept[: len(fade)] *= fade
    kept[-len(fade) :] *= fade[::-1]
    return as_pcm(kept)


def in_a_room(pcm: Pcm, noise_rms: float, seed: list[int]) -> Pcm:
    """Return 48 kHz sound with noise whose power is mostly below 1 kHz. The same seed gives the same noise."""
    white = np.random.default_rng(seed).normal(0.0, 1.0, len(pcm))
    spectrum = np.fft.rfft(white)
    turn = np.exp(-1j * np.linspace(0.0, np.pi, len(spectrum)))
    noise = np.fft.irfft(spectrum / (1 - NOISE_MEMORY * turn), len(pcm))
    return as_pcm(pcm + noise * (noise_rms / np.sqrt(np.mean(noise**2))))


def as_pcm(sound: NDArray[np.float64]) -> Pcm:
    """Return samples as int16; what is too loud is cut off."""
    return np.clip(np.rint(sound), -32768, 32767).astype(np.int16)
