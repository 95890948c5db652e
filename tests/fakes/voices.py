"""Stands for the embedded voices: what /voice needs of them, without models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import numpy as np

from bot.errors import ModelError
from bot.models.loaded_voices import GONE, LoadedVoices
from bot.models.voices import EmbeddedVoice
from bot.texts.text import Text
from voice.errors import SynthesisError
from voice.speaking.port import AudioChunk, Synthesizer


class SilentVoice:
    """Stands for a loaded voice."""

    async def stream(self, _text: str) -> AsyncGenerator[AudioChunk, None]:
        yield AudioChunk(np.zeros(100, np.int16), 22_050)


class FakeVoices(LoadedVoices):
    """Voices without models. `here`: those that are installed; `unreachable`: why none can be downloaded. `speaker`:
    speaks in place of each.
    """

    def __init__(self, speaker: Synthesizer | None = None) -> None:
        self.speaker = speaker or SilentVoice()
        self.here = {"joe"}
        self.unreachable = ""
        self.broken = False

    def holds(self, voice: EmbeddedVoice) -> bool:
        return voice.name in self.here

    async def look(self) -> None:
        """Do nothing: `here` is what there is."""

    def prepare(self, voice: EmbeddedVoice) -> None:
        """Do nothing: each is loaded at once."""

    def retry(self, voice: EmbeddedVoice) -> None:
        """Do nothing: what is not here is not loaded."""

    def problem(self, voice: EmbeddedVoice) -> Text | None:
        return None if self.holds(voice) else GONE

    async def install(self, voice: EmbeddedVoice, report: Callable[[float], Awaitable[None]]) -> None:
        if self.unreachable:
            raise ModelError(self.unreachable)
        await report(34.4)
        self.here.add(voice.name)

    async def load(self, voice: EmbeddedVoice) -> None:
        if self.broken:
            raise SynthesisError("The voice cannot be read.")

    @asynccontextmanager
    async def using(self, voice: EmbeddedVoice) -> AsyncIterator[Synthesizer]:
        yield self.speaker
