"""Which reader looks at screens, and what stands in when it fails."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import structlog

from voice.screen.ocr import OcrReader
from voice.screen.port import NoPictureError, VisionError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from bot.settings import LlmSettings
    from voice.screen.port import LatestRequest, VisionReader, VisionReading, VisionRequest
    from voice.screen.settings import ScreenSettings

log = structlog.get_logger()

# A model that failed is let alone so long, doubled for each further failure in a row up to the second.
FIRST_REST_S = 20.0
LONGEST_REST_S = 600.0
HOUR_S = 3_600.0
# Who asks waits for the model so long, its turn included: the tool that looks has 15 s (`bot.brain.tools.screen`), a
# reply 20, and the text has still to be read in them.
PATIENCE_S = 8.0
# Seconds that one look of the model may take; then the screen's text is read instead.
MODEL_TIMEOUT_S = 15.0


class ScreenReaders(Protocol):
    """What looks at the screens of all rooms."""

    @property
    def by_model(self) -> bool:
        """Return whether a model describes screens; its looks cost, so they come at intervals."""

    @property
    def shortcoming(self) -> str:
        """Return what is read less well than was chosen at present, a plain sentence; empty when all is well."""

    async def read(self, latest: LatestRequest, *, urgent: bool = False) -> VisionReading:
        """See `VisionReader.read`."""

    async def rest(self) -> None:
        """Nobody shares any more: give back what can be made anew."""


class OcrOnlyReaders:
    """Text is all that is read."""

    by_model = False
    shortcoming = ""

    def __init__(self, ocr: OcrReader) -> None:
        self._ocr = ocr

    async def read(self, latest: LatestRequest, *, urgent: bool = False) -> VisionReading:
        """Return the screen's text."""
        return await self._ocr.read(latest, urgent=urgent)

    async def rest(self) -> None:
        """End the process."""
        await self._ocr.rest()


class ModelWithOcrFallback:
    """A model describes the screen; while it fails, or has cost enough, its text is read."""

    by_model = True

    def __init__(
        self,
        model: VisionReader,
        ocr: OcrReader,
        *,
        monotonic: Callable[[], float],
        most_per_hour: int = 0,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`most_per_hour`: looks of the model in any hour; 0 means no limit. `patience_s`: how long who asks waits."""
        self._model = model
        self._ocr = ocr
        self._monotonic = monotonic
        self._most_per_hour = most_per_hour
        self._patience_s = patience_s
        self._looked_at: deque[float] = deque()
        self._told_ceiling = False
        self._failures = 0
        self._rested_at = float("-inf")
        self._problem = ""

    @property
    def shortcoming(self) -> str:
        """Return why the model is not asked at present, if it is not."""
        if self._monotonic() < self._rested_at:
            return f"Only the text is read at present: {self._problem}"
        if self._told_ceiling:
            return (
                "Only the text is read at present: the vision model has looked as often as it may in an hour "
                "(screen.max_looks_per_hour)."
            )
        return ""

    async def read(self, latest: LatestRequest, *, urgent: bool = False) -> VisionReading:
        """Ask the model, else read the text. Raises `VisionError` when that fails too."""
        # How often the model had failed when it was given the picture; None while its turn has not come.
        failures: int | None = None

        def given() -> VisionRequest:
            nonlocal failures
            if not self._may_ask():
                raise VisionError("The vision model is let alone for now.")
            look = latest()
            self._looked_at.append(self._monotonic())
            failures = self._failures
            if not look.question:
                patience.reschedule(None)
            return look

        if self._may_ask():
            try:
                async with asyncio.timeout(self._patience_s if urgent else None) as patience:
                    reading = await self._model.read(given, urgent=urgent)
            except NoPictureError:
                raise
            except TimeoutError:
                self._failed(failures, f"The vision model did not answer within {self._patience_s:g} s.")
            except VisionError as error:
                self._failed(failures, str(error))
            else:
                self._failures = 0
                return reading
        return await self._ocr.read(latest, urgent=urgent)

    def _failed(self, failures: int | None, problem: str) -> None:
        """Let the model alone, unless it was not given the picture, or failed another meanwhile: one outage is one."""
        if failures != self._failures:
            return
        rest_s = min(FIRST_REST_S * 2**self._failures, LONGEST_REST_S)
        self._failures += 1
        self._rested_at = self._monotonic() + rest_s
        self._problem = problem
        log.warning("screen_model_failed", problem=problem, rest_s=rest_s)

    def _may_ask(self) -> bool:
        now = self._monotonic()
        return now >= self._rested_at and self._may_cost(now)

    def _may_cost(self, now: float) -> bool:
        """Return whether the model may be asked once more within this hour."""
        while self._looked_at and now - self._looked_at[0] >= HOUR_S:
            self._looked_at.popleft()
        may = not self._most_per_hour or len(self._looked_at) < self._most_per_hour
        if not may and not self._told_ceiling:
            log.warning("screen_model_ceiling_reached", looks_per_hour=self._most_per_hour)
        self._told_ceiling = not may
        return may

    async def rest(self) -> None:
        """End the process."""
        await self._ocr.rest()


def describe_reader(screen: ScreenSettings, llm: LlmSettings) -> str:
    """Return who looks at the pictures, as a plain sentence for who shares."""
    if not uses_model(screen):
        return "By the bot alone, on its own machine: it reads the text. Pictures go nowhere else."
    where = urlsplit(screen.base_url or llm.base_url).hostname or "OpenAI"
    return f"By the vision model {screen.model} at {where}, which is sent pictures now and then and describes them."


def uses_model(screen: ScreenSettings) -> bool:
    """Return whether the settings choose a model."""
    return bool(screen.model)


@asynccontextmanager
async def open_readers(
    screen: ScreenSettings, llm: LlmSettings, *, monotonic: Callable[[], float]
) -> AsyncIterator[ScreenReaders]:
    """Lend what the settings choose; nothing is loaded before somebody shares."""
    async with OcrReader(busy_share=screen.busy_share) as ocr:
        if not uses_model(screen):
            yield OcrOnlyReaders(ocr)
            return
        # Imported where it is needed: the library takes a second to load.
        from bot.llm.openai_vision import OpenAIVision
        from voice.endpoint import Endpoint

        where = screen.base_url or llm.base_url
        endpoint = Endpoint(where, screen.model, llm.key_for(where, screen.api_key), MODEL_TIMEOUT_S)
        async with OpenAIVision(endpoint) as model:
            yield ModelWithOcrFallback(model, ocr, monotonic=monotonic, most_per_hour=screen.max_looks_per_hour)
