"""The embedded voices in memory: loaded when somebody wants them, shared by all servers, closed when nobody does.

Only one loaded model is kept that no server has chosen, because each takes 200 to 360 MB.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import structlog

from bot.background_task import cancel_all
from bot.clock import Clock, SystemClock
from bot.errors import ModelError, crash_sentence
from bot.models.directory import ModelDirectory, install
from bot.models.voices import VOICES, EmbeddedVoice
from bot.texts.text import Text, joined
from voice.errors import SynthesisError, VoiceLoadingError
from voice.retry_pause import retry_pause_s
from voice.speaking.embedded import USUAL_MANNER, EmbeddedModel, VoiceManner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection
    from types import TracebackType

    from voice.speaking.port import Synthesizer

log = structlog.get_logger()

# A sentence does not wait longer for its voice: another voice is better. Loading goes on.
WAIT_FOR_VOICE_S = 3.0
# How long somebody who wants to hear or choose a voice waits until it is loaded: seconds, unless the machine is stuck.
LOAD_TIMEOUT_S = 60.0

# Seconds after which a voice that could not be loaded is tried again, when it is next wanted: after the first failure,
# and at most, however often it fails.
FIRST_RETRY_S = 30.0
LONGEST_RETRY_S = 600.0

NOT_DOWNLOADED = Text("The download failed. The owner of this bot can read why in the log.")
TRIED_AGAIN = Text("I try again later.")
GONE = Text("I do not have the files of this voice. If a server manager chooses it in /settings, I download them.")


@dataclass(slots=True)
class _LoadedModel:
    """A model in memory. `voices`: its voices that are ready, by name."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    model: EmbeddedModel | None = None
    voices: dict[str, Synthesizer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _LoadFailure:
    """Why a voice could not be loaded, `count` times in a row. `retry_at`: monotonic seconds."""

    why: Text
    count: int
    retry_at: float


class LoadedVoices:
    """Loads, shares and closes the embedded voices. For one event loop.

    `chosen`: the names that servers have chosen. *Ownership*: an async context manager that owns the models, the tasks
    that load them.
    """

    def __init__(
        self,
        models: ModelDirectory,
        *,
        chosen: Callable[[], Collection[str]],
        manner: VoiceManner = USUAL_MANNER,
        clock: Clock | None = None,
    ) -> None:
        self._models = models
        self._chosen = chosen
        self._manner = manner
        self._clock = clock or SystemClock()
        self._loaded: dict[str, _LoadedModel] = {}
        self._loading: dict[str, asyncio.Task[Synthesizer]] = {}
        # By voice, until it is loaded.
        self._failures: dict[str, _LoadFailure] = {}
        # The names of the models that were here when the folder was last looked at.
        self._here: frozenset[str] = frozenset()
        # By model: how many callers use it now, or wait until they can.
        self._uses: Counter[str] = Counter()
        # One at a time: two would take the processor from people who are heard at the moment.
        self._loads = asyncio.Lock()
        self._downloading: EmbeddedVoice | None = None

    async def __aenter__(self) -> Self:
        await self.look()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await cancel_all(self._loading.values())
        for model in self._loaded.values():
            await model.stack.aclose()
        self._loaded.clear()

    def holds(self, voice: EmbeddedVoice) -> bool:
        """Return whether the voice was installed when somebody last looked."""
        return voice.model_name in self._here

    async def look(self) -> None:
        """Look which voices are installed."""
        self._here = await asyncio.to_thread(self._models_here)

    def _models_here(self) -> frozenset[str]:
        here = (each for each in VOICES if each.model is None or self._models.holds(each.model))
        return frozenset(each.model_name for each in here)

    def problem(self, voice: EmbeddedVoice) -> Text | None:
        """Return why the voice cannot speak now, or None if nothing is known against it."""
        failure = self._failures.get(voice.name)
        # Another process of the bot may have downloaded what is being loaded, so the last look says nothing against it.
        if failure is None and self._task_of(voice) is not None:
            return None
        if not self.holds(voice):
            return GONE
        # Files that were gone may be here again.
        return None if failure is None or failure.why == GONE else joined((failure.why, TRIED_AGAIN))

    async def install(self, voice: EmbeddedVoice, report: Callable[[float], Awaitable[None]]) -> None:
        """Download the voice unless it is installed. `report` gets the megabytes so far. Raises `ModelError`.

        One voice at a time: meanwhile others are refused, so nobody waits in a queue.
        """
        await self.look()
        if voice.model is None or self.holds(voice):
            return
        if self._downloading is not None:
            raise ModelError(
                Text(
                    "I am downloading the voice {voice} now. Try again in a few minutes.",
                    voice=self._downloading.title,
                )
            )
        self._downloading = voice
        try:
            await install(voice.model, self._models, report)
        except ModelError as error:
            log.warning("model_not_downloaded", model=voice.model.name, problem=error)
            raise ModelError(NOT_DOWNLOADED) from error
        finally:
            self._downloading = None
        await self.look()

    def prepare(self, voice: EmbeddedVoice) -> None:
        """Begin to load a voice that will be wanted soon, unless it failed a moment ago. A failure shows when it is
        wanted.
        """
        if self._has_rested(voice):
            self._load_task(voice)

    def retry(self, voice: EmbeddedVoice) -> None:
        """Begin to load a voice again that could not be loaded, if it has rested for long enough."""
        if (voice.name in self._failures or not self.holds(voice)) and self._has_rested(voice):
            self._load_task(voice)

    def _has_rested(self, voice: EmbeddedVoice) -> bool:
        """Return whether a voice has not failed, or long enough ago."""
        failure = self._failures.get(voice.name)
        return failure is None or self._clock.monotonic() >= failure.retry_at

    async def load(self, voice: EmbeddedVoice) -> None:
        """Load a voice, unless it is loaded. Raises `SynthesisError`."""
        await self._wait_for(voice, LOAD_TIMEOUT_S)

    @asynccontextmanager
    async def using(self, voice: EmbeddedVoice) -> AsyncIterator[Synthesizer]:
        """Yield the voice; it is not closed meanwhile.

        Raises `SynthesisError` if it cannot be loaded, and `VoiceLoadingError` if that takes longer.
        """
        # Before it waits: otherwise the model could be closed between its loading and its use.
        self._uses[voice.model_name] += 1
        try:
            yield await self._wait_for(voice, WAIT_FOR_VOICE_S)
        finally:
            self._uses[voice.model_name] -= 1

    async def _wait_for(self, voice: EmbeddedVoice, timeout_s: float) -> Synthesizer:
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(self._load_task(voice))
        except TimeoutError as exc:
            raise VoiceLoadingError(Text("I am still loading the voice {voice}.", voice=voice.title)) from exc

    def _load_task(self, voice: EmbeddedVoice) -> asyncio.Task[Synthesizer]:
        task = self._task_of(voice)
        if task is None:
            task = self._loading[voice.name] = asyncio.create_task(self._load(voice), name=f"voice-{voice.name}")
        return task

    def _task_of(self, voice: EmbeddedVoice) -> asyncio.Task[Synthesizer] | None:
        """Return the task that loads a voice, or has loaded it."""
        task = self._loading.get(voice.name)
        failed = task is not None and task.done() and (task.cancelled() or task.exception() is not None)
        return None if failed else task

    async def _load(self, voice: EmbeddedVoice) -> Synthesizer:
        async with self._loads:
            await self._close_unwanted(keep=voice)
            try:
                await self.look()
                if not self.holds(voice):
                    raise SynthesisError(GONE)
                loaded = self._loaded.setdefault(voice.model_name, _LoadedModel())
                if loaded.model is None:
                    opened = EmbeddedModel.open(voice.engine, voice.folder(self._models.directory))
                    loaded.model = await loaded.stack.enter_async_context(opened)
                synthesizer = loaded.voices[voice.name] = await loaded.model.voice(voice.style, self._manner)
            except Exception as error:
                self._failures[voice.name] = failure = self._one_more_failure(voice, error)
                log.warning("voice_not_loaded", voice=voice.name, problem=error, failures=failure.count)
                raise
            self._failures.pop(voice.name, None)
            log.info("voice_loaded", voice=voice.name)
            return synthesizer

    def _one_more_failure(self, voice: EmbeddedVoice, error: Exception) -> _LoadFailure:
        before = self._failures.get(voice.name)
        count = 1 if before is None else before.count + 1
        pause_s = retry_pause_s(count, first_s=FIRST_RETRY_S, longest_s=LONGEST_RETRY_S)
        return _LoadFailure(crash_sentence(error), count, self._clock.monotonic() + pause_s)

    async def _close_unwanted(self, keep: EmbeddedVoice) -> None:
        """Close models that nobody uses and of which no server has chosen a voice."""
        chosen = set(self._chosen())
        for name, model in list(self._loaded.items()):
            if name == keep.model_name or self._uses[name] or chosen & set(model.voices):
                continue
            del self._loaded[name]
            for voice in model.voices:
                self._loading.pop(voice, None)
            await model.stack.aclose()
            log.info("voice_closed", model=name)
