"""Opens the speech models besides the recogniser: synthesiser, voice activity detection and end-of-turn detection.

The models for voice activity and end of turn are optional. Without the first, the bot uses the copy that comes with the
recogniser. Without the second, an utterance ends after a fixed silence.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from bot.errors import SetupError
from bot.health import DegradedPart
from bot.models.catalogue import TURN_SMART, VAD_SILERO, VOICE_JOE
from bot.models.directory import ModelDirectory
from bot.models.loaded_voices import LoadedVoices
from bot.models.voices import DEFAULT_VOICE
from bot.room.server_voice import ServerVoice
from bot.texts.text import Text
from voice.circuit_breaker import Outage
from voice.errors import SynthesisError
from voice.listening.turn_detection import SmartTurn, SmartTurnDetector
from voice.listening.vad import SileroVad, StackedSileroVad, VadError
from voice.quick_model import QuickModel, TurnModelError
from voice.speaking.fallback import FallbackSynthesizer
from voice.speaking.piper import PiperSynthesizer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable

    from bot.channel.port import Place
    from bot.health import Health
    from bot.llm.settings import LlmSettings
    from bot.room.server_voice import RoomVoice
    from bot.server_settings import ServerSettingsBook
    from bot.settings import ModelsSettings
    from voice.listening.settings import ListeningSettings
    from voice.listening.turn_detection import TurnEndDetector
    from voice.listening.vad import SpeechProbability
    from voice.speaking.port import AudioChunk, Synthesizer
    from voice.speaking.settings import SpeakingSettings

log = structlog.get_logger()

# What happens instead of speaking when there is no voice.
IN_WRITING = Text("I write what I want to say")
# What happens instead of judging pauses, and what to do.
_BY_SILENCE = Text("silence alone tells me that somebody has finished")
_TURN_MODEL_FAILS = Text(
    'It gives no answers. Restart me, or set listening.turn_model = "{without}"; the log has more '
    "(`turn_model_failed`)."
)
_NO_SOUND: tuple[AudioChunk, ...] = ()


def open_vad(models: ModelsSettings) -> SpeechProbability:
    """Load the model that scores all speakers in one call, else the recogniser's copy. Raises `VadError`."""
    model_directory = ModelDirectory(models.directory)
    if model_directory.holds(VAD_SILERO):
        try:
            return StackedSileroVad(model_directory.path(VAD_SILERO) / VAD_SILERO.main_file.name)
        except VadError as error:
            log.warning("no_stacking_vad", problem=error)
    return SileroVad()


async def open_turn_model(
    stack: AsyncExitStack, models: ModelsSettings, listening: ListeningSettings, *, health: Health
) -> TurnEndDetector | None:
    """Load the end-of-turn model onto `stack`, and register it with `health`. Returns None if it is switched off,
    missing or unreadable.
    """
    model_directory = ModelDirectory(models.directory)
    if listening.turn_model == "off" or not model_directory.holds(TURN_SMART):
        log.info("no_turn_model", setting=listening.turn_model)
        return None
    file = model_directory.path(TURN_SMART) / TURN_SMART.main_file.name
    try:
        detector = await stack.enter_async_context(SmartTurnDetector(lambda: SmartTurn(file)))
    except TurnModelError as error:
        log.warning("no_turn_model", setting=listening.turn_model, problem=error)
        return None
    name = Text("My end-of-turn model")
    health.add_check(partial(turn_model_problems, detector, name, instead=_BY_SILENCE, without="off"))
    return detector


def turn_model_problems(
    model: QuickModel[Any, Any, Any], name: Text, *, instead: Text, without: str
) -> list[DegradedPart]:
    """Return that a model that judges pauses fails, if it does. `name`: of the model; `instead`: what is so then;
    `without`: the value of `listening.turn_model` that leaves it out.
    """
    if model.failing_since is None:
        return []
    outage = Outage(model.failing_since, None, SetupError(_TURN_MODEL_FAILS.fill(without=without)))
    return [DegradedPart(name, instead, outage)]


@asynccontextmanager
async def open_synthesizer(
    settings: SpeakingSettings, *, models: ModelsSettings, llm: LlmSettings, health: Health
) -> AsyncIterator[Synthesizer]:
    """Yield the synthesiser that the settings choose, and register it with `health`.

    If no voice can be loaded, log this and do not raise: the bot still listens, remembers and answers in writing.
    """
    async with AsyncExitStack() as stack:
        if not settings.by_endpoint:
            embedded = await _embedded_voice(stack, settings, models)
            if isinstance(embedded, _NoVoice):
                health.add_missing(Text("My voice"), instead=IN_WRITING, problem=embedded.reason)
            yield embedded
            return
        stand_in = (
            _NoVoice(SynthesisError(""))
            if settings.fallback == "none"
            else await _embedded_voice(stack, settings, models)
        )
        # Imported here because the library takes a second to load.
        from voice.speaking.openai import OpenAISynthesizer, SpeechEndpoint

        endpoint = SpeechEndpoint(
            base_url=settings.base_url,
            model=settings.model,
            voice=settings.voice_name,
            api_key=llm.key_for(settings.base_url, settings.api_key),
            speed=settings.speed,
            timeout_s=settings.timeout_s,
        )
        remote = await stack.enter_async_context(OpenAISynthesizer(endpoint))
        voice = FallbackSynthesizer(remote, stand_in)
        instead = IN_WRITING if isinstance(stand_in, _NoVoice) else Text("the embedded voice speaks")
        health.add_check(partial(_voice_problems, voice, Text("The voice {model}", model=settings.model), instead))
        yield voice


@asynccontextmanager
async def open_voices(
    settings: SpeakingSettings, models: ModelsSettings, servers: Iterable[ServerSettingsBook]
) -> AsyncIterator[LoadedVoices]:
    """Yield the embedded voices that servers can choose. None is loaded before a server wants it. `servers`: the
    books with their settings, looked at again each time.
    """

    def chosen() -> set[str]:
        names = {each.voice for book in servers for each in book.all().values() if each.voice is not None}
        return {name for name in names if not _is_usual(name, settings)}

    directory = ModelDirectory(models.directory)
    async with LoadedVoices(directory, chosen=chosen, speed=settings.speed, variety=settings.variety) as voices:
        yield voices


def voice_factory(
    settings: SpeakingSettings, servers: ServerSettingsBook, voices: LoadedVoices
) -> Callable[[Place, Synthesizer, Callable[[Text], None]], RoomVoice]:
    """Return the function that makes the voice of one room. It gets the voice of servers that have chosen none, and
    what has a sentence written into the channel.
    """

    def open_voice(place: Place, usual: Synthesizer, tell: Callable[[Text], None]) -> ServerVoice:
        def chosen() -> str | None:
            name = servers.of(place.guild_id).voice
            return None if name is None or _is_usual(name, settings) else name

        # The voices of endpoints speak any language.
        code = "" if settings.by_endpoint else DEFAULT_VOICE.code
        return ServerVoice(chosen=chosen, voices=voices, usual=usual, tell=tell, usual_code=code)

    return open_voice


def _is_usual(name: str, settings: SpeakingSettings) -> bool:
    """Return whether the bot's usual voice, which is loaded at its start, is the one of that name."""
    return name == DEFAULT_VOICE.name and not settings.by_endpoint


def _voice_problems(voice: FallbackSynthesizer, what: Text, instead: Text) -> list[DegradedPart]:
    return [] if voice.outage is None else [DegradedPart(what, instead, voice.outage)]


async def _embedded_voice(stack: AsyncExitStack, settings: SpeakingSettings, models: ModelsSettings) -> Synthesizer:
    directory = ModelDirectory(models.directory).path(VOICE_JOE)
    try:
        voice = PiperSynthesizer.open(directory, speed=settings.speed, variety=settings.variety)
        return await stack.enter_async_context(voice)
    except SynthesisError as error:
        log.warning("no_voice", problem=error)
        return _NoVoice(error)


class _NoVoice:
    """A synthesiser that fails every sentence with the reason, so that the sentence is written instead."""

    def __init__(self, reason: SynthesisError) -> None:
        self.reason = reason

    async def stream(self, _text: str) -> AsyncGenerator[AudioChunk, None]:
        for sound in _NO_SOUND:
            yield sound
        raise SynthesisError("{why}", why=self.reason)
