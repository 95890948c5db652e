"""Stand-ins for recogniser, language model and voice, which take as long as they are told to.

With them a scenario is played as on a processor of any speed. The recogniser knows the recordings, the model says what
the bot says without one, and the voice hums: of each text another tune, which is known to whoever listens.
"""

from __future__ import annotations

import asyncio
import zlib
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from bot.brain.decider import Reason
from bot.brain.skip import SKIP, skip_instruction
from bot.brain.wakeword import use_of_name
from compaction.language.text import sentences
from rehearsal.roomtone.known_sounds import KnownSounds
from rehearsal.roomtone.speech_engines import answer_text
from rehearsal.runner.local_servers import open_local_servers
from rehearsal.script.scenario import SendStep, SpeechSpec
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario
from rehearsal.servers.chat import ChatBehaviour, LocalChatServer
from rehearsal.servers.realtime_behaviour import ResponseRequest
from rehearsal.servers.transcription import (
    MODEL,
    RATE_HZ,
    LocalTranscriptionServer,
    Transcription,
    TranscriptionBehaviour,
    decode_audio,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from numpy.typing import NDArray

    from rehearsal.runner.local_servers import LocalServers, ServerModels
    from rehearsal.script.scenario import Scenario
    from rehearsal.servers.chat import ChatCall
    from rehearsal.servers.speech import SpeechEngine
    from rehearsal.servers.transcription import TranscriptionRequest

# How fast the voice hums, how long it holds a tone, and between which tones: sounds are compared below 1 kHz.
HUMMED_LETTERS_S = 15
TONE_SAMPLES = RATE_HZ // 10
LOWEST_HZ, HIGHEST_HZ = 120.0, 600.0
LOUDNESS = 6_000.0


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds until the recogniser has a text, the model its first token, and the voice its first sound."""

    recogniser_s: float
    model_s: float
    voice_s: float


@asynccontextmanager
async def open_stand_ins(
    scenario: Scenario, delays: Delays, engines: ServerModels, *, names: tuple[str, ...]
) -> AsyncIterator[tuple[LocalServers, dict[str, object], KnownSounds]]:
    """Yield the servers of a scenario, the settings that make the bot use them, and who knows what the voice has said.

    `names`: the bot's. A scenario's own model takes so much longer. One without a model has none if that took no time
    either. `engines`: a speech-to-speech model is theirs, and no stand-in.
    """
    said, spoken = KnownSounds(), KnownSounds()
    for recording, text in _recordings(scenario).items():
        said.add(decode_audio(await asyncio.to_thread(recording.read_bytes)), text)

    async def recognise(request: TranscriptionRequest) -> Transcription:
        await asyncio.sleep(delays.recogniser_s)
        return Transcription(await said.transcribe(request.pcm))

    def answer(call: ChatCall) -> str:
        return answer_call(call, names=names)

    @asynccontextmanager
    async def voice() -> AsyncIterator[SpeechEngine]:
        async def speak(text: str) -> tuple[NDArray[np.int16], int]:
            await asyncio.sleep(delays.voice_s)
            tune = hum(text)
            spoken.add(tune, text)
            return tune, RATE_HZ

        yield speak

    servers = scenario.servers.model_copy(update={"speech": scenario.servers.speech or SpeechSpec()})
    async with AsyncExitStack() as stack:
        ears = await stack.enter_async_context(LocalTranscriptionServer(TranscriptionBehaviour(recognise)))
        local = await stack.enter_async_context(open_local_servers(servers, replace(engines, voice=voice)))
        for model in filter(None, (local.model, local.fallback)):
            model.behaviour.first_token_delay_s += delays.model_s
        if local.model is None and delays.model_s:
            behaviour = ChatBehaviour(answer, first_token_delay_s=delays.model_s)
            local.model = await stack.enter_async_context(LocalChatServer(behaviour))
        heard = {"asr.base_url": ears.base_url, "asr.model": MODEL, "tuning.voice_falls_back": False}
        yield local, {**local.settings, **heard}, spoken


def _recordings(scenario: Scenario) -> dict[Path, str]:
    """Return the recordings of a scenario with their texts. That of a voice message is a line of a bundled one."""
    sent = {step.sends.resolve() for step in scenario.steps if isinstance(step, SendStep)}
    bundled = [say for path in bundled_scenarios().values() for say in load_scenario(path).says] if sent else []
    lines = {say.audio.resolve(): say.say for say in (*bundled, *scenario.says) if say.audio is not None}
    own = {say.audio.resolve() for say in scenario.says if say.audio is not None}
    return {recording: lines[recording] for recording in own | sent}


def answer_call(call: ChatCall, *, names: tuple[str, ...]) -> str:
    """Return what the bot would say without a model. Where it may skip, it answers questions of whom it talks with."""
    told = "\n\n".join(str(each["content"]) for each in call.messages if each["role"] == "system")
    *before, asked = [_lines(str(each["content"])) for each in call.messages if each["role"] == "user"] or [[""]]
    offered = {reason for reason in Reason if skip_instruction(reason) and skip_instruction(reason) in told}
    if offered and not (offered == {Reason.ENGAGED} and asked[-1].endswith("?")):
        return SKIP
    called = [line for line in asked if use_of_name(line, names).mentioned] or asked[-1:]
    others = [line for line in asked if line not in called]
    said = []
    for line in called:
        known = (each for other in (*chain.from_iterable(before), *others) for each in _sentences(other))
        items = tuple(("user", each) for each in (*known, line))
        said.append(answer_text(ResponseRequest(told, items, (), 0), names=names))
    return " ".join(dict.fromkeys(said))


def _lines(turn: str) -> list[str]:
    """Return a turn as one for each of its speakers: `[21:04] Ada: …`."""
    time, mark, lines = turn.partition("] ")
    return [f"{time}{mark}{line}" for line in lines.splitlines()] or [turn]


def _sentences(line: str) -> list[str]:
    """Return a line as one for each of its sentences."""
    speaker, mark, said = line.partition(": ")
    return [f"{speaker}{mark}{each}" for each in sentences(said)] or [line]


def hum(text: str) -> NDArray[np.int16]:
    """Return the tune of a text, mono at `RATE_HZ`."""
    tones = 1 + len(text) * RATE_HZ // (HUMMED_LETTERS_S * TONE_SAMPLES)
    pitches = np.random.default_rng(zlib.crc32(text.encode())).uniform(LOWEST_HZ, HIGHEST_HZ, tones)
    return (LOUDNESS * np.sin(2 * np.pi / RATE_HZ * np.cumsum(np.repeat(pitches, TONE_SAMPLES)))).astype(np.int16)
