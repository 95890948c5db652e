"""Opens the speech recogniser that the settings choose, and lets health tell what it cannot do.

An endpoint hears first where there is one. The model of this process stands behind it, loaded from the start: after a
failure there would be no time to load it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.errors import SetupError
from bot.health import DegradedPart, FaultKind, HealthFault
from bot.models.text_end_reader import open_text_end_reader
from bot.texts.text import Text, joined, sentence_of
from bot.wiring.speech_models import turn_model_problems
from voice.asr.fallback import FallbackRecogniser
from voice.asr.observed import ObservedRecogniser
from voice.asr.reading_recogniser import ReadingRecogniser
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.whisper import whisper_on_best_device
from voice.circuit_breaker import Outage
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from bot.llm.settings import LlmSettings
    from bot.monitoring.metrics import Metrics
    from voice.asr.placement import CudaFallback
    from voice.asr.port import Recogniser
    from voice.asr.settings import AsrSettings

log = structlog.get_logger()

NOT_LOADED = HealthFault(
    FaultKind.MODELS,
    "The speech model is not loaded: it failed and is loaded again with the next sentence. `roomtone doctor` tries it.",
)
KEEPS_FAILING = HealthFault(
    FaultKind.MODELS,
    "The speech model keeps failing, so nobody is understood. It is loaded again after a pause. The log says why; "
    "`roomtone doctor` tries it.",
)
HANGS = HealthFault(
    FaultKind.MODELS,
    "Several recognitions have never ended, and each keeps a speech model in memory. No other one is loaded, so nobody "
    "is understood: restart me.",
    needs_restart=True,
)
STOPPED = HealthFault(
    FaultKind.MODELS, "The speech recogniser has stopped, which is a defect: restart me. The log says why."
)
# The model that reads what was recognised, and what happens where it fails.
_READER = Text("My model that reads what is said")
_BY_SOUND = Text("I judge by the sound alone whether somebody has finished")
_READER_NOT_LOADED = Text(
    "It could not be loaded. Run `roomtone models pull turn-text --again` and restart me; the log has more "
    "(`no_text_end_model`)."
)
_IN_USE = {"cuda": Text("the GPU (CUDA)"), "cpu": Text("the processor")}


@dataclass(frozen=True, slots=True)
class OpenedRecogniser:
    """What recognises speech. `local`: the model of this process; None: an endpoint recognises alone. `faults`: returns
    why nobody is understood at present. `reads_texts`: whether texts may come with what their words make expect next
    (`Recognition.text_end`).
    """

    recogniser: Recogniser
    local: CudaFallback | None
    faults: Callable[[], list[HealthFault]] = list
    reads_texts: bool = False

    def device_sentence(self) -> Text | None:
        """Return where the model of this process runs, and why if not on the GPU that is there; None without one."""
        if self.local is None or self.local.place is None:
            return None
        sentence = Text("My speech model runs on {device}.", device=_IN_USE[self.local.place.device])
        return sentence if self.local.failure is None else joined((sentence, sentence_of(self.local.failure.problem)))

    def gpu_failure(self) -> RecogniserError | None:
        """Return why the processor recognises speech instead of the GPU; None: the GPU does, or there is none."""
        return None if self.local is None or self.local.failure is None else self.local.failure.problem


@asynccontextmanager
async def open_recogniser(
    settings: AsrSettings, *, llm: LlmSettings, metrics: Metrics, text_end_folder: Path | None = None
) -> AsyncIterator[OpenedRecogniser]:
    """Yield the recogniser that the settings choose. Register all of it with `metrics` and its health. `llm`: has the
    key for an endpoint at the same address. `text_end_folder`: see `open_text_end_reader`.

    Raises `RecogniserError` when the local model is needed and cannot be loaded.
    """
    async with AsyncExitStack() as stack:
        opening = _Opening(stack, settings, metrics)
        opened = await opening.local() if settings.engine == "local" else await opening.endpoint(llm)
        reading = await opening.reading(opened.recogniser, text_end_folder)
        metrics.health.add_fault_check(opened.faults)
        yield replace(opened, recogniser=reading, reads_texts=reading is not opened.recogniser)


@dataclass(frozen=True, slots=True)
class _Opening:
    """Opens recognisers onto `stack`."""

    stack: AsyncExitStack
    settings: AsrSettings
    metrics: Metrics

    async def local(self, *, stands_in: bool = False) -> OpenedRecogniser:
        """Load the model of this process. `stands_in`: an endpoint hears while it can. Raises `RecogniserError`."""
        model = whisper_on_best_device(self.settings, stands_in=stands_in)
        recogniser = await self.stack.enter_async_context(QueuedRecogniser(model.load))
        self.metrics.health.add_check(partial(_gpu_problems, model))
        self.metrics.health.add_check(partial(_model_problems, recogniser, stands_in=stands_in))
        self.metrics.add_queue(lambda: recogniser.queue)
        self.metrics.add_recogniser(lambda: recogniser.figures)
        return OpenedRecogniser(recogniser, model, partial(_model_faults, recogniser))

    async def reading(self, recogniser: Recogniser, folder: Path | None) -> Recogniser:
        """Put the model that reads what is recognised behind `recogniser`, if it is there."""
        opened = await open_text_end_reader(self.stack, folder)
        health = self.metrics.health
        if opened.is_damaged:
            health.add_missing(_READER, instead=_BY_SOUND, problem=SetupError(_READER_NOT_LOADED))
        if opened.reader is None:
            return recogniser
        health.add_check(partial(turn_model_problems, opened.reader, _READER, instead=_BY_SOUND, without="sound"))
        return ReadingRecogniser(recogniser, opened.reader)

    async def endpoint(self, llm: LlmSettings) -> OpenedRecogniser:
        """Connect the endpoint, with the model of this process behind it if that can be loaded."""
        # Imported here because the library takes a second to load.
        from voice.asr.remote import TIMEOUT_S, RemoteRecogniser
        from voice.endpoint import Endpoint

        key = llm.key_for(self.settings.base_url, self.settings.api_key)
        endpoint = Endpoint(self.settings.base_url, self.settings.endpoint_model, key, TIMEOUT_S)
        own: OpenedRecogniser | None = None
        try:
            own = await self.local(stands_in=True)
        except RecogniserError as error:
            log.warning("no_local_recogniser", problem=error)
        remote = RemoteRecogniser(endpoint, languages=self.settings.languages, has_fallback=own is not None)
        await self.stack.enter_async_context(remote)
        observe = self.metrics.on_remote_recogniser
        if own is None:
            self.metrics.add_remote_recogniser(lambda: True)
            return OpenedRecogniser(ObservedRecogniser(remote, observe), None)
        both, behind = FallbackRecogniser(remote, own.recogniser, observe=observe), own
        self.metrics.add_remote_recogniser(lambda: both.outage is None)
        what = Text("The speech recogniser {model}", model=self.settings.endpoint_model)
        self.metrics.health.add_check(partial(_first_problems, both, what, Text("the local one hears")))
        # While the first one hears, nobody misses the other.
        return OpenedRecogniser(both, own.local, lambda: [] if both.outage is None else behind.faults())


def _first_problems(recogniser: FallbackRecogniser, what: Text, instead: Text) -> list[DegradedPart]:
    return [] if recogniser.outage is None else [DegradedPart(what, instead, recogniser.outage)]


def _gpu_problems(model: CudaFallback) -> list[DegradedPart]:
    if model.failure is None:
        return []
    outage = Outage(model.failure.since, None, model.failure.problem)
    return [DegradedPart(Text("The GPU"), Text("the processor recognises speech instead"), outage)]


def _model_problems(recogniser: QueuedRecogniser, *, stands_in: bool) -> list[DegradedPart]:
    if recogniser.outage is None:
        return []
    alone, behind = Text("I understand nobody"), Text("nothing stands in for the other one")
    return [DegradedPart(Text("My own speech recogniser"), behind if stands_in else alone, recogniser.outage)]


def _model_faults(recogniser: QueuedRecogniser) -> list[HealthFault]:
    if not recogniser.is_running:
        return [STOPPED]
    if recogniser.is_loaded:
        return []
    outage = recogniser.outage
    if outage is None:
        return [NOT_LOADED]
    return [HANGS if outage.retry_at is None else KEEPS_FAILING]
