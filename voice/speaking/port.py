"""What the rest of Roomtone asks of a voice."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from voice.audio import DISCORD_RATE_HZ
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from voice.audio import Pcm


@dataclass(frozen=True, slots=True)
class Speech:
    """One spoken piece of text: mono int16 at `rate_hz`."""

    text: str
    pcm: Pcm
    rate_hz: int


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """Some of a text's sound, which goes on where the one before it ended: mono int16 at `rate_hz`."""

    pcm: Pcm
    rate_hz: int

    @property
    def duration_s(self) -> float:
        """Return how long it sounds."""
        return len(self.pcm) / self.rate_hz


class Synthesizer(Protocol):
    """Speaks text."""

    def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield `text` spoken, as it is made. Raises `SynthesisError`, also after some of it.

        *Cancellation*: closing the generator ends the work.
        """


async def synthesize_all(synthesizer: Synthesizer, text: str) -> Speech:
    """Return `text` spoken, once all of it is made. Raises `SynthesisError`."""
    async with aclosing(synthesizer.stream(text)) as stream:
        sounds = [sound async for sound in stream]
    if not sounds:
        return Speech(text, np.zeros(0, np.int16), DISCORD_RATE_HZ)
    rate_hz = sounds[0].rate_hz
    return Speech(text, np.concatenate([resample(sound.pcm, sound.rate_hz, rate_hz) for sound in sounds]), rate_hz)
