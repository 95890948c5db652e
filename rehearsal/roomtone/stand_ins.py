"""Stand-ins for recogniser and voice, which take as long as they are told to, and a scripted model that does.

With them a scenario is played as on a processor of any speed. The recogniser knows the scenario's recordings, and the
voice hums: of each text another tune, which is known to whoever listens.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rehearsal.people.clip import read_sound
from rehearsal.roomtone.known_sounds import KnownSounds
from rehearsal.runner.local_servers import LocalServers, ServerModels, open_local_servers
from rehearsal.script.scenario import Scenario, SpeechSpec
from rehearsal.servers import transcription
from rehearsal.servers.transcription import RATE_HZ, LocalTranscriptionServer, Transcription, TranscriptionBehaviour

# How fast the voice hums, and how long it holds a tone. Sounds are compared below 1 kHz.
HUMMED_LETTERS_S = 15
TONE_SAMPLES = RATE_HZ // 10
TONES_HZ = (120.0, 600.0)
LOUDNESS = 6_000.0


# Seconds until the recogniser has a text, the model its first token, and the voice its first sound.
Delays: TypeAlias = tuple[float, float, float]


@asynccontextmanager
async def open_stand_ins(
    scenario: Scenario, delays: Delays, engines: ServerModels
) -> AsyncIterator[tuple[LocalServers, dict[str, object], KnownSounds]]:
    """Yield the servers of a scenario, the settings that make the bot use them, and who knows what the voice has said.

    A scripted model takes so much longer. Speech-to-speech is that of `engines`, and no stand-in.
    """
    (recogniser_s, model_s, voice_s), said, spoken = delays, KnownSounds(), KnownSounds()
    for step in scenario.says:
        assert step.audio is not None, "a scenario with sound has a recording of each line"
        said.add(await asyncio.to_thread(read_sound, step.audio, rate_hz=RATE_HZ), step.say)

    async def recognise(request: transcription.TranscriptionRequest) -> Transcription:
        await asyncio.sleep(recogniser_s)
        return Transcription(await said.transcribe(request.pcm))

    async def speak(text: str) -> tuple[NDArray[np.int16], int]:
        await asyncio.sleep(voice_s)
        spoken.add(hum(text), text)
        return hum(text), RATE_HZ

    servers = scenario.servers.model_copy(update={"speech": scenario.servers.speech or SpeechSpec()})
    async with (
        LocalTranscriptionServer(TranscriptionBehaviour(recognise)) as ears,
        open_local_servers(servers, replace(engines, voice=lambda: nullcontext(speak))) as local,
    ):
        for model in filter(None, (local.model, local.fallback)):
            model.behaviour.first_token_delay_s += model_s
        heard = {"asr.base_url": ears.base_url, "asr.model": transcription.MODEL, "tuning.voice_falls_back": False}
        yield local, {**local.settings, **heard}, spoken


def hum(text: str) -> NDArray[np.int16]:
    """Return the tune of a text, mono at `RATE_HZ`."""
    tones = 1 + len(text) * RATE_HZ // (HUMMED_LETTERS_S * TONE_SAMPLES)
    pitches = np.random.default_rng(zlib.crc32(text.encode())).uniform(*TONES_HZ, tones)
    return (LOUDNESS * np.sin(2 * np.pi / RATE_HZ * np.cumsum(np.repeat(pitches, TONE_SAMPLES)))).astype(np.int16)
