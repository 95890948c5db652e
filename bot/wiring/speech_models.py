"""Opens the speech models: recogniser, voices, voice activity detection and end-of-turn detection.

The models for voice activity and end of turn are optional. Without the first, the bot uses the copy that comes with the
recogniser. Without the second, an utterance ends after a fixed silence. A recogniser at an endpoint hears first where
there is one. The model of this process stands behind it, loaded from the start: after a failure there would be no time.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from bot.errors import SetupError
from bot.health import SEE_LOG, Actor, FaultKind, Health, HealthFault, outage_fault
from bot.models.catalogue import TURN_MODEL, VAD_SILERO
from bot.models.directory import ModelDirectory
from bot.models.loaded_voices import LoadedVoices
from bot.models.voices import DEFAULT_VOICE, open_voice
from bot.texts.text import Text, joined, sentence_of, verbatim
from bot.tuning import UNTUNED, Tuning
from voice.asr.fallback import FallbackRecogniser
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.whisper import engine_on_best_device
from voice.circuit_breaker import Outage
from voice.errors import RecogniserError, SynthesisError
from voice.listening.turn_detection import SmartTurn, TurnEndDetector, TurnModel, TurnModelDetector, TurnModelError
from voice.listening.vad import SileroVad, SpeechProbability, StackedSileroVad, VadError
from voice.speaking.embedded import VoiceManner
from voice.speaking.fallback import FallbackSynthesizer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
    from pathlib import Path

    from bot.llm.settings import LlmSettings
    from bot.models.entry import ModelEntry
    from bot.monitoring.metrics import Metrics
    from bot.server_settings import ServerSettingsBook
    from bot.settings import ModelsSettings
    from voice.asr.placement import CudaFallback
    from voice.asr.port import Recogniser
    from voice.asr.settings import AsrSettings
    from voice.speaking.openai import OpenAISynthesizer
    from voice.speaking.port import AudioChunk, Synthesizer
    from voice.speaking.settings import SpeakingSettings

log = structlog.get_logger()

# What happens instead of speaking when there is no voice.
IN_WRITING = Text("I write what I want to say")
# The end-of-turn models. The first of them that is installed is used.
TURN_MODELS: Final[Mapping[ModelEntry, type[TurnModel]]] = {TURN_MODEL: SmartTurn}
# What happens instead of judging pauses, and what to do.
_BY_SILENCE = Text("I notice only by the silence that somebody has finished")
_TURN_MODEL_FAILS = "It gives no answers. Restart me. The log has more (`turn_model_failed`)."
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


async def open_turn_model(stack: AsyncExitStack, models: ModelsSettings, *, health: Health) -> TurnEndDetector | None:
    """Load the first end-of-turn model of `TURN_MODELS` that is installed onto `stack`, and register it with `health`.
    Returns None if there is none, or it is unreadable.
    """
    model_directory = ModelDirectory(models.directory)
    entry = next(filter(model_directory.holds, TURN_MODELS), None)
    if entry is None:
        log.info("no_turn_model")
        return None
    model, file = TURN_MODELS[entry], model_directory.path(entry) / entry.main_file.name
    try:
        detector = await stack.enter_async_context(TurnModelDetector(partial(model, file), model.line))
    except TurnModelError as error:
        log.warning("no_turn_model", problem=error)
        return None
    health.add_outage(
        FaultKind.MODELS,
        Text("My model that notices when somebody has finished"),
        _BY_SILENCE,
        partial(_failing, detector),
    )
    return detector


def _failing(detector: TurnModelDetector) -> Outage | None:
    """Return since when the end-of-turn model fails, if it does."""
    since = detector.failing_since
    return None if since is None else Outage(since, None, SetupError(_TURN_MODEL_FAILS))


@asynccontextmanager
async def open_synthesizer(
    settings: SpeakingSettings,
    *,
    models: ModelsSettings,
    llm: LlmSettings,
    health: Health,
    tuning: Tuning = UNTUNED,
) -> AsyncIterator[Synthesizer]:
    """Yield the synthesiser that the settings choose, and register it with `health`.

    If no voice can be loaded, log this and do not raise: the bot still listens, remembers and answers in writing.
    """
    async with AsyncExitStack() as stack:
        if not settings.by_endpoint:
            embedded = await _embedded_voice(stack, settings, models, tuning)
            if isinstance(embedded, _NoVoice):
                health.add_missing(FaultKind.VOICE, Text("My voice"), instead=IN_WRITING, problem=embedded.reason)
            yield embedded
            return
        stand_in = (
            await _embedded_voice(stack, settings, models, tuning)
            if tuning.voice_falls_back
            else _NoVoice(SynthesisError(""))
        )
        remote = await stack.enter_async_context(endpoint_voice(settings, llm, timeout_s=tuning.voice_timeout_s))
        voice = FallbackSynthesizer(remote, stand_in)
        instead = IN_WRITING if isinstance(stand_in, _NoVoice) else Text("my own voice speaks")
        part = Text("The voice {model}", model=settings.model)
        health.add_outage(FaultKind.VOICE, part, instead, lambda: voice.outage)
        yield voice


def endpoint_voice(
    settings: SpeakingSettings, llm: LlmSettings, *, timeout_s: float = UNTUNED.voice_timeout_s
) -> OpenAISynthesizer:
    """Return the voice at an endpoint, which is closed at the end of its block."""
    # Imported here because the library takes a second to load.
    from voice.speaking.openai import OpenAISynthesizer, SpeechEndpoint

    endpoint = SpeechEndpoint(
        base_url=settings.base_url,
        model=settings.model,
        voice=settings.voice_name,
        api_key=llm.key_for(settings.base_url, settings.api_key),
        speed=settings.speed,
        timeout_s=timeout_s,
    )
    return OpenAISynthesizer(endpoint)


@asynccontextmanager
async def open_voices(
    settings: SpeakingSettings,
    models: ModelsSettings,
    servers: Iterable[ServerSettingsBook],
    tuning: Tuning = UNTUNED,
) -> AsyncIterator[LoadedVoices]:
    """Yield the embedded voices that servers can choose. None is loaded before a server wants it. `servers`: the
    books with their settings, looked at again each time.
    """

    def chosen() -> set[str]:
        names = {each.voice for book in servers for each in book.all().values() if each.voice is not None}
        # The bot's usual voice is loaded at its start.
        return names if settings.by_endpoint else names - {DEFAULT_VOICE.name}

    manner = VoiceManner(settings.speed, tuning.voice_variety)
    async with LoadedVoices(ModelDirectory(models.directory), chosen=chosen, manner=manner) as voices:
        yield voices


async def _embedded_voice(
    stack: AsyncExitStack, settings: SpeakingSettings, models: ModelsSettings, tuning: Tuning
) -> Synthesizer:
    manner = VoiceManner(settings.speed, tuning.voice_variety)
    try:
        return await stack.enter_async_context(open_voice(DEFAULT_VOICE, models.directory, manner))
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


NOT_LOADED = HealthFault(
    FaultKind.MODELS,
    Text("My speech recogniser failed, so it is not loaded. I load it again with the next sentence."),
    "`roomtone doctor` tests it.",
    acts=Actor.NOBODY,
)
STOPPED = HealthFault(
    FaultKind.MODELS,
    Text("My speech recogniser has stopped. This is an error in me."),
    f"Restart me. {SEE_LOG}",
)
_IN_USE = {"cuda": Text("the GPU (CUDA)"), "cpu": Text("the processor")}


@dataclass(frozen=True, slots=True)
class OpenedRecogniser:
    """What recognises speech. `local`: the model of this process; None: an endpoint recognises alone. `faults`: returns
    what is wrong with it at present.
    """

    recogniser: Recogniser
    local: CudaFallback | None
    faults: Callable[[], list[HealthFault]] = list

    def device_sentence(self) -> Text | None:
        """Return where the model of this process runs, and why if not on the GPU that is there; None without one."""
        if self.local is None or self.local.place is None:
            return None
        sentence = Text("My speech model runs on {device}.", device=_IN_USE[self.local.place.device])
        return sentence if self.local.failure is None else joined((sentence, sentence_of(self.local.failure.problem)))


@asynccontextmanager
async def open_recogniser(
    settings: AsrSettings, folder: Path, *, llm: LlmSettings, metrics: Metrics, health: Health
) -> AsyncIterator[OpenedRecogniser]:
    """Yield the recogniser that the settings choose. Register all of it with `metrics` and its health. `folder`:
    of the local model. `llm`: has the key for an endpoint at the same address.

    Raises `RecogniserError` when the local model is needed and cannot be loaded.
    """
    async with AsyncExitStack() as stack:
        if settings.by_endpoint:
            opened = await _remote_recogniser(stack, settings, folder, llm, metrics, health)
        else:
            opened = await _local_recogniser(stack, settings, folder, metrics, health)
        health.add_check(opened.faults)
        yield opened


async def _local_recogniser(
    stack: AsyncExitStack,
    settings: AsrSettings,
    folder: Path,
    metrics: Metrics,
    health: Health,
    *,
    stands_in: bool = False,
) -> OpenedRecogniser:
    """Load the model of this process. `stands_in`: an endpoint hears while it can. Raises `RecogniserError`."""
    model = engine_on_best_device(folder, settings, stands_in=stands_in)
    recogniser = await stack.enter_async_context(QueuedRecogniser(model))
    health.add_outage(
        FaultKind.MODELS,
        Text("The GPU"),
        Text("the processor recognises speech, and that takes longer"),
        lambda: model.failure,
        over=verbatim(""),
    )
    metrics.add_recogniser(recogniser)
    return OpenedRecogniser(recogniser, model, partial(_model_faults, recogniser))


async def _remote_recogniser(
    stack: AsyncExitStack, settings: AsrSettings, folder: Path, llm: LlmSettings, metrics: Metrics, health: Health
) -> OpenedRecogniser:
    """Connect the endpoint, with the model of this process behind it if that can be loaded."""
    # Imported here because the library takes a second to load.
    from voice.asr.remote import TIMEOUT_S, RemoteRecogniser
    from voice.endpoint import Endpoint

    key = llm.key_for(settings.base_url, settings.api_key)
    endpoint = Endpoint(settings.base_url, settings.endpoint_model, key, TIMEOUT_S)
    own: OpenedRecogniser | None = None
    try:
        own = await _local_recogniser(stack, settings, folder, metrics, health, stands_in=True)
    except RecogniserError as error:
        log.warning("no_local_recogniser", problem=error)
    remote = RemoteRecogniser(endpoint, has_fallback=own is not None)
    await stack.enter_async_context(remote)
    behind = own
    both = FallbackRecogniser(
        remote, None if behind is None else behind.recogniser, observe=metrics.on_remote_recogniser
    )
    metrics.add_remote_recogniser(both)
    if behind is None:
        return OpenedRecogniser(both, None)
    return OpenedRecogniser(both, behind.local, partial(_remote_faults, settings.endpoint_model, both, behind))


def _remote_faults(model: str, both: FallbackRecogniser, behind: OpenedRecogniser) -> list[HealthFault]:
    """Return what is wrong with an endpoint and the model behind it, which nobody misses while the first one hears."""
    if (outage := both.outage) is None:
        return [replace(fault, blocks=False) for fault in behind.faults()]
    part = Text("The speech recogniser {model}", model=model)
    return [outage_fault(FaultKind.MODELS, part, Text("my own speech recogniser listens"), outage), *behind.faults()]


def _model_faults(recogniser: QueuedRecogniser) -> list[HealthFault]:
    if not recogniser.is_running:
        return [STOPPED]
    if recogniser.model.is_loaded:
        return []
    outage = recogniser.model.outage
    if outage is None:
        return [NOT_LOADED]
    part, instead = Text("My own speech recogniser"), Text("I understand nobody")
    fault = outage_fault(FaultKind.MODELS, part, instead, outage, blocks=True)
    return [replace(fault, needs_restart=outage.retry_at is None)]
