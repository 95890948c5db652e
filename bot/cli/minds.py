"""What is behind the local servers of a scenario: the embedded voice, and a speech-to-speech mind."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.cli.realtime_mind import realtime_engines
from bot.models.catalogue import VOICE_JOE
from bot.models.directory import ModelDirectory
from rehearsal.runner.local_servers import Minds
from voice.speaking.piper import PiperSynthesizer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from config.schema import Settings
    from rehearsal.servers.speech import Engine
    from voice.audio import Pcm


def minds(settings: Settings, names: tuple[str, ...]) -> Minds:
    """Return what opens each mind when a scenario needs it. `names`: whom the ear knows."""
    return Minds(voice=lambda: _voice(settings), realtime=lambda: realtime_engines(settings, names=names))


@asynccontextmanager
async def _voice(settings: Settings) -> AsyncIterator[Engine]:
    """Load the embedded voice and lend it as an engine. Raises `SynthesisError`."""
    directory = ModelDirectory(settings.models.directory).path(VOICE_JOE)
    async with PiperSynthesizer.open(directory, variety=0.0) as voice:

        async def speak(text: str) -> tuple[Pcm, int]:
            speech = await voice.synthesize(text)
            return speech.pcm, speech.rate_hz

        yield speak
