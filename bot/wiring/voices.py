"""Which voice the bot speaks with: the endpoint's, the embedded one, one behind the other, or none."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.health import Ailment
from bot.models.catalogue import VOICE_JOE
from bot.models.directory import ModelDirectory
from voice.errors import SynthesisError
from voice.speaking.fallback import FallbackSynthesizer
from voice.speaking.piper import PiperSynthesizer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from bot.health import Health
    from bot.settings import LlmSettings, ModelsSettings
    from voice.speaking.port import Sound, Synthesizer
    from voice.speaking.settings import SpeakingSettings

log = structlog.get_logger()

IN_WRITING = "I write what I want to say"
_NO_SOUND: tuple[Sound, ...] = ()


@asynccontextmanager
async def chosen_voice(
    settings: SpeakingSettings, *, models: ModelsSettings, llm: LlmSettings, health: Health | None = None
) -> AsyncIterator[Synthesizer]:
    """Lend the voice that the settings name. `health` is told where to ask whether it works.

    Without any the bot still listens, remembers, and answers in writing; that is logged and never raised.
    """
    async with AsyncExitStack() as stack:
        if not _wants_endpoint(settings):
            embedded = await _embedded(stack, settings, models)
            if health is not None and isinstance(embedded, _Mute):
                health.missing("my voice", instead=IN_WRITING, problem=embedded.reason)
            yield embedded
            return
        stand_in = _Mute("") if settings.stand_in == "none" else await _embedded(stack, settings, models)
        # Imported where it is needed: the library takes a second to load.
        from voice.speaking.openai import OpenAISynthesizer, SpeechEndpoint

        endpoint = SpeechEndpoint(
            base_url=settings.base_url,
            model=settings.model,
            voice=settings.voice_name,
            api_key=llm.key_for(settings.base_url, settings.api_key),
            speed=settings.speed,
            audio_format=settings.audio_format,
            timeout_s=settings.timeout_s,
            stall_s=settings.stall_timeout_s,
        )
        remote = await stack.enter_async_context(OpenAISynthesizer(endpoint))
        voice = FallbackSynthesizer(remote, stand_in)
        if health is not None:
            instead = IN_WRITING if isinstance(stand_in, _Mute) else "the embedded voice speaks"
            health.watch(partial(_ailing, voice, f"the voice {settings.model}", instead))
        yield voice


def _ailing(voice: FallbackSynthesizer, what: str, instead: str) -> list[Ailment]:
    return [] if voice.outage is None else [Ailment(what, instead, voice.outage)]


def _wants_endpoint(settings: SpeakingSettings) -> bool:
    if settings.engine == "auto":
        return bool(settings.base_url) or settings.api_key is not None
    return settings.engine == "endpoint"


async def _embedded(stack: AsyncExitStack, settings: SpeakingSettings, models: ModelsSettings) -> Synthesizer:
    directory = ModelDirectory(models.directory).path(VOICE_JOE)
    try:
        voice = PiperSynthesizer.open(directory, speed=settings.speed, variety=settings.variety)
        return await stack.enter_async_context(voice)
    except SynthesisError as error:
        log.warning("no_voice", problem=str(error))
        return _Mute(str(error))


class _Mute:
    """The voice of a bot that has none: every sentence fails with the reason, and so is written instead."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    async def stream(self, _text: str) -> AsyncGenerator[Sound, None]:
        for sound in _NO_SOUND:
            yield sound
        raise SynthesisError(self.reason)
