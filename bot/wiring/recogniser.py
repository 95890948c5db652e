"""Opens the speech recogniser that the settings choose, and lets health tell what it cannot do.

An endpoint or the cluster's recognisers hear first where there are any. The model of this process stands behind them,
loaded from the start: after a failure there would be no time to load it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.errors import SetupError
from bot.health import DegradedPart, FaultKind, HealthFault
from bot.models.text_end_reader import OpenedReader, open_text_end_reader
from bot.texts.text import Text, joined, sentence_of
from bot.wiring.speech_models import turn_model_problems
from voice.asr.fallback import FallbackRecogniser
from voice.asr.observed import ObservedRecogniser, RecognitionService
from voice.asr.reading_recogniser import ReadingRecogniser
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.text_end import ReaderFault
from voice.asr.whisper import whisper_on_best_device
from voice.circuit_breaker import Outage
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from bot.llm.settings import LlmSettings
    from bot.monitoring.metrics import Metrics
    from voice.asr.placement import CudaFallback
    from voice.asr.pool_readers import PoolReaders
    from voice.asr.port import Recogniser
    from voice.asr.settings import AsrSettings
    from voice.endpoint import Endpoint

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
# The same of the cluster's recognisers. /status names no machine.
_POOL_READER = Text("A model in the cluster that reads what is said")
_POOL_BY_SOUND = Text("where it is missing, I judge by the sound alone whether somebody has finished")
_POOL_READER_FAULTS = {
    ReaderFault.NOT_LOADED: Text(
        "It could not be loaded. My log names the machine and the process (`pool_reader_failed`): run `roomtone models "
        "pull turn-text --again` there, and end that process. Ray starts another."
    ),
    ReaderFault.FAILS: Text(
        "It gives no answers. My log names the machine and the process (`pool_reader_failed`): end that process. Ray "
        "starts another."
    ),
}
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
    settings: AsrSettings,
    *,
    llm: LlmSettings,
    metrics: Metrics,
    pool: Endpoint | None = None,
    text_end_folder: Path | None = None,
) -> AsyncIterator[OpenedRecogniser]:
    """Yield the recogniser that the settings choose, behind the cluster's `pool` if there is one. Register all of them
    with `metrics` and its health. `llm`: has the key for an endpoint at the same address. `text_end_folder`: see
    `open_text_end_reader`.

    Raises `RecogniserError` when the local model is needed and cannot be loaded.
    """
    async with AsyncExitStack() as stack:
        stands_in = pool is not None or settings.engine != "local"
        opening = _Opening(stack, settings, metrics, stands_in=stands_in, text_end_folder=text_end_folder)
        opened = await opening.local() if settings.engine == "local" else await opening.endpoint(llm)
        if pool is not None:
            opened = await opening.behind_pool(opened, pool)
        metrics.health.add_fault_check(opened.faults)
        yield opened


@dataclass(frozen=True, slots=True)
class _Opening:
    """Opens recognisers onto `stack`. `stands_in`: another one hears as long as it can."""

    stack: AsyncExitStack
    settings: AsrSettings
    metrics: Metrics
    stands_in: bool
    text_end_folder: Path | None

    async def local(self) -> OpenedRecogniser:
        """Load the model of this process. Raises `RecogniserError`."""
        model = whisper_on_best_device(self.settings, stands_in=self.stands_in)
        recogniser = await self.stack.enter_async_context(QueuedRecogniser(model.load))
        reading = await self._reading(recogniser)
        self.metrics.health.add_check(partial(_gpu_problems, model))
        self.metrics.health.add_check(partial(_model_problems, recogniser, stands_in=self.stands_in))
        self.metrics.add_queue(lambda: recogniser.queue)
        self.metrics.add_recogniser(lambda: recogniser.figures)
        faults = partial(_model_faults, recogniser)
        return OpenedRecogniser(reading, model, faults, reads_texts=reading is not recogniser)

    async def _reading(self, recogniser: Recogniser) -> Recogniser:
        """Put the model that reads what is recognised behind `recogniser`, if it is there.

        A recogniser that stands in for others hears little, and the model takes 180 MB.
        """
        opened = OpenedReader() if self.stands_in else await open_text_end_reader(self.stack, self.text_end_folder)
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
        local: OpenedRecogniser | None = None
        try:
            local = await self.local()
        except RecogniserError as error:
            log.warning("no_local_recogniser", problem=error)
        remote = RemoteRecogniser(endpoint, has_fallback=local is not None)
        await self.stack.enter_async_context(remote)
        if local is None:
            return OpenedRecogniser(self._alone(remote), None)
        what = Text("The speech recogniser {model}", model=self.settings.endpoint_model)
        return self._behind(remote, RecognitionService.ENDPOINT, local, what, Text("the local one hears"))

    async def behind_pool(self, own: OpenedRecogniser, pool: Endpoint) -> OpenedRecogniser:
        """Connect the cluster's recognisers, with `own` behind them."""
        # Imported here because the library takes a second to load.
        from voice.asr.remote import RemoteRecogniser

        pooled = RemoteRecogniser(pool, is_own=True, has_fallback=True)
        await self.stack.enter_async_context(pooled)
        what, instead = Text("The cluster's speech recognition"), Text("my own one hears")
        both = self._behind(pooled, RecognitionService.CLUSTER, own, what, instead)
        reads_texts = self.text_end_folder is not None
        if reads_texts:
            self.metrics.health.add_check(partial(_pool_reader_problems, pooled.readers))
        return replace(both, reads_texts=reads_texts)

    def _alone(self, remote: Recogniser) -> Recogniser:
        """Return the endpoint, which is asked whatever happens."""
        self.metrics.add_remote_recogniser(RecognitionService.ENDPOINT, lambda: True)
        return ObservedRecogniser(remote, partial(self.metrics.on_remote_recogniser, RecognitionService.ENDPOINT))

    def _behind(
        self, remote: Recogniser, which: RecognitionService, own: OpenedRecogniser, what: Text, instead: Text
    ) -> OpenedRecogniser:
        """Put `own` behind a recogniser elsewhere. `what`: its name; `instead`: what is so while it is away."""
        observe = partial(self.metrics.on_remote_recogniser, which)
        both = FallbackRecogniser(remote, own.recogniser, observe=observe)
        self.metrics.add_remote_recogniser(which, lambda: both.outage is None)
        self.metrics.health.add_check(partial(_first_problems, both, what, instead))
        # While the first one hears, nobody misses the other.
        return OpenedRecogniser(both, own.local, lambda: [] if both.outage is None else own.faults())


def _first_problems(recogniser: FallbackRecogniser, what: Text, instead: Text) -> list[DegradedPart]:
    return [] if recogniser.outage is None else [DegradedPart(what, instead, recogniser.outage)]


def _pool_reader_problems(readers: PoolReaders) -> list[DegradedPart]:
    found = [(readers.failing_since(fault), sentence) for fault, sentence in _POOL_READER_FAULTS.items()]
    return [
        DegradedPart(_POOL_READER, _POOL_BY_SOUND, Outage(since, None, SetupError(sentence)))
        for since, sentence in found
        if since is not None
    ]


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
