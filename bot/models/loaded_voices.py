"""The embedded voices in memory: loaded when somebody wants them, shared by all servers, closed when nobody does.

Only one loaded model is kept that no server has chosen, because each takes 200 to 360 MB.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import structlog

from bot.models.installing import install
from bot.texts.text import Text
from voice.errors import SynthesisError
from voice.speaking.kokoro import KokoroModel
from voice.speaking.piper import PiperSynthesizer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection
    from types import TracebackType

    from bot.models.catalogue import ModelEntry
    from bot.models.directory import ModelDirectory
    from bot.models.voices import EmbeddedVoice
    from voice.speaking.port import Synthesizer

    Install = Callable[[ModelEntry, ModelDirectory, Callable[[float], Awaitable[None]]], Awaitable[None]]

log = structlog.get_logger()

# A sentence does not wait longer for its voice: another voice is better. Loading goes on.
WAIT_FOR_VOICE_S = 8.0


@dataclass(slots=True)
class _LoadedModel:
    """A model in memory. `voices`: its voices that are ready, by name. `uses`: how many callers use it now."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    kokoro: KokoroModel | None = None
    voices: dict[str, Synthesizer] = field(default_factory=dict)
    uses: int = 0


class LoadedVoices:
    """Loads, shares and closes the embedded voices. For one event loop.

    `chosen`: the names that servers have chosen. *Ownership*: an async context manager that owns the models and the
    tasks that load them.
    """

    def __init__(
        self,
        models: ModelDirectory,
        *,
        chosen: Callable[[], Collection[str]],
        speed: float = 1.0,
        variety: float = 1.0,
        install: Install = install,
    ) -> None:
        self._models = models
        self._chosen = chosen
        self._speed = speed
        self._variety = variety
        self._install = install
        self._loaded: dict[str, _LoadedModel] = {}
        self._loading: dict[str, asyncio.Task[Synthesizer]] = {}
        # One download and one load at a time.
        self._downloads = asyncio.Lock()
        self._loads = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        tasks = list(self._loading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for model in self._loaded.values():
            await model.stack.aclose()
        self._loaded.clear()

    def holds(self, voice: EmbeddedVoice) -> bool:
        """Return whether the voice is installed."""
        return self._models.holds(voice.model)

    async def install(self, voice: EmbeddedVoice, report: Callable[[float], Awaitable[None]]) -> None:
        """Download the voice unless it is installed. `report` gets the megabytes so far. Raises `ModelError`."""
        async with self._downloads:
            if not self.holds(voice):
                await self._install(voice.model, self._models, report)

    def prepare(self, voice: EmbeddedVoice) -> None:
        """Begin to load a voice that will be wanted soon. A failure shows when it is wanted."""
        self._load_task(voice)

    async def load(self, voice: EmbeddedVoice) -> None:
        """Load a voice, however long that takes. Raises `SynthesisError`."""
        await asyncio.shield(self._load_task(voice))

    @asynccontextmanager
    async def using(self, voice: EmbeddedVoice) -> AsyncIterator[Synthesizer]:
        """Yield the voice; it is not closed meanwhile. Raises `SynthesisError` if it cannot be loaded soon."""
        try:
            async with asyncio.timeout(WAIT_FOR_VOICE_S):
                synthesizer = await asyncio.shield(self._load_task(voice))
        except TimeoutError as exc:
            raise SynthesisError(Text("The voice {voice} is still being loaded.", voice=voice.title)) from exc
        model = self._loaded[voice.model.name]
        model.uses += 1
        try:
            yield synthesizer
        finally:
            model.uses -= 1

    def _load_task(self, voice: EmbeddedVoice) -> asyncio.Task[Synthesizer]:
        task = self._loading.get(voice.name)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._loading[voice.name] = asyncio.create_task(self._load(voice), name=f"voice-{voice.name}")
        return task

    async def _load(self, voice: EmbeddedVoice) -> Synthesizer:
        async with self._loads:
            await self._close_unwanted(keep=voice)
            model = self._loaded.setdefault(voice.model.name, _LoadedModel())
            try:
                synthesizer = model.voices[voice.name] = await self._open(voice, model)
            except SynthesisError as error:
                log.warning("voice_not_loaded", voice=voice.name, problem=error)
                raise
            log.info("voice_loaded", voice=voice.name)
            return synthesizer

    async def _open(self, voice: EmbeddedVoice, model: _LoadedModel) -> Synthesizer:
        directory = self._models.path(voice.model)
        if voice.style is None:
            piper = PiperSynthesizer.open(directory, speed=self._speed, variety=self._variety)
            return await model.stack.enter_async_context(piper)
        if model.kokoro is None:
            model.kokoro = await model.stack.enter_async_context(KokoroModel.open(directory))
        return await model.kokoro.voice(voice.style, speed=self._speed)

    async def _close_unwanted(self, keep: EmbeddedVoice) -> None:
        """Close models that nobody uses and of which no server has chosen a voice."""
        chosen = set(self._chosen())
        for name, model in list(self._loaded.items()):
            if name == keep.model.name or model.uses or chosen & set(model.voices):
                continue
            del self._loaded[name]
            for voice in model.voices:
                self._loading.pop(voice, None)
            await model.stack.aclose()
            log.info("voice_closed", model=name)
