"""What the rest of Roomtone asks of a speech recogniser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from voice.audio import Pcm


@dataclass(frozen=True, slots=True)
class Recognition:
    """What the recogniser made of one piece of audio, with what the guards need to judge it."""

    text: str
    language: str
    mean_logprob: float
    compression_ratio: float
    no_speech_probability: float
    duration_s: float  # of the audio
    compute_s: float  # wall time in the model


class Recognizer(Protocol):
    """Turns speech into text. Safe to call from many tasks; the implementation queues."""

    async def recognize(self, pcm: Pcm, *, language: str | None = None, glossary: tuple[str, ...] = ()) -> Recognition:
        """Return the text of `pcm` (mono int16, 16 kHz). `language` None means: detect it.

        `glossary`: names and words to expect. Raises `RecogniserOverloadedError` when the queue is full,
        `RecogniserError` when the model failed.
        """
