"""The interface of a voice (text-to-speech), which the rest of Roomtone calls."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from voice.audio import DISCORD_RATE_HZ, Pcm
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@dataclass(frozen=True, slots=True)
class Speech:
    """The sound of a text: mono int16 at `rate_hz`. `glued`: no space belongs before the text."""

    text: str
    pcm: Pcm
    rate_hz: int
    glued: bool = False


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """The next part of a text's sound: mono int16 at `rate_hz`."""

    pcm: Pcm
    rate_hz: int

    @property
    def duration_s(self) -> float:
        """Return the duration in seconds."""
        return len(self.pcm) / self.rate_hz


class Synthesizer(Protocol):
    """Turns text into sound."""

    def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield the sound of `text` while it is synthesized. Raises `SynthesisError`, perhaps after some chunks.

        *Cancellation*: closing the generator stops the synthesis.
        """


async def synthesize_all(synthesizer: Synthesizer, text: str) -> Speech:
    """Return the whole sound of `text`. Raises `SynthesisError`."""
    async with aclosing(synthesizer.stream(text)) as stream:
        chunks = [chunk async for chunk in stream]
    if not chunks:
        return Speech(text, np.zeros(0, np.int16), DISCORD_RATE_HZ)
    rate_hz = chunks[0].rate_hz
    return Speech(text, np.concatenate([resample(chunk.pcm, chunk.rate_hz, rate_hz) for chunk in chunks]), rate_hz)
