"""Chooses the reader of shared screens: a vision model with OCR as its fallback, or OCR alone."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import structlog

from bot.texts.text import Text, sentence_of, verbatim
from voice.circuit_breaker import CircuitBreaker
from voice.screen.frame_decoder import FrameDecoder
from voice.screen.ocr import OcrReader
from voice.screen.port import LatestRequest, NoPictureError, VisionError, VisionReading, VisionRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.clock import Clock
    from bot.llm.model_calls import CallMeter, Payer
    from bot.llm.settings import LlmSettings
    from compaction.settings import BudgetSettings
    from voice.screen.frame import ScreenFrame
    from voice.screen.settings import ScreenSettings

log = structlog.get_logger()

# The share of one CPU core that reading text may use while screens keep changing. A new line is then noted within a
# second or two, and the rest of the CPU is left for speech recognition.
BUSY_SHARE = 0.3
# Of the vision model, of all rooms together: one screen that moves all the time. Then the text is read instead.
MOST_LOOKS_PER_HOUR = 400

# How long a failing model is not asked: the first time, and at most after repeated failures.
FIRST_OPEN_S = 20.0
LONGEST_OPEN_S = 600.0
HOUR_S = 3_600.0
# How long an urgent read waits for the model, queueing included. The tool `look_at_screen` has 15 s and a reply 20 s,
# in which the text may still have to be read.
URGENT_TIMEOUT_S = 8.0
# Seconds that one look of the model may take; then the screen's text is read instead.
MODEL_TIMEOUT_S = 15.0


class VisionModel(Protocol):
    """A model that describes pictures, each at somebody's cost. `bot.llm.openai_vision` implements it."""

    async def read(self, latest: LatestRequest, *, payer: Payer) -> VisionReading:
        """Return what is on the screen. Raises `VisionError`."""


class ScreenReaders:
    """Reads the screens of all rooms with a vision model, or by OCR while the model fails, has no looks left in this
    hour, or who pays has reached a limit. `model`: None: OCR alone.

    `most_per_hour`: looks of the model in any hour, 0 for no limit. `urgent_timeout_s`: limit of urgent reads by it.
    """

    def __init__(
        self,
        ocr: OcrReader,
        decoder: FrameDecoder,
        model: VisionModel | None = None,
        *,
        clock: Clock,
        most_per_hour: int = 0,
        urgent_timeout_s: float = URGENT_TIMEOUT_S,
    ) -> None:
        self._ocr = ocr
        self._decoder = decoder
        self._model = model
        # Whether a model describes screens. Each look costs, so looks come at intervals.
        self.by_model = model is not None
        self._clock = clock
        self._most_per_hour = most_per_hour
        self._urgent_timeout_s = urgent_timeout_s
        self._looked_at: deque[float] = deque()
        self._ceiling_logged = False
        self._breaker = CircuitBreaker(failure_threshold=1, open_s=FIRST_OPEN_S, longest_open_s=LONGEST_OPEN_S)

    def limitation(self, payer: Payer) -> Text:
        """Return why the model is not asked now, a plain sentence; empty if it is, or if there is none."""
        if self.by_model and payer.is_used_up:
            return Text(
                "I can read only the text on the screen now, because this server has reached its limit for an hour."
            )
        if not self._breaker.would_admit(self._clock.monotonic()):
            return Text("I can read only the text on the screen now. {why}", why=self._breaker.problem)
        if self._ceiling_logged:
            return Text(
                "I can read only the text on the screen now. I have described as many pictures as I can in an hour."
            )
        return verbatim("")

    async def read(self, latest: LatestRequest, *, payer: Payer, urgent: bool = False) -> VisionReading:
        """Ask the model at the payer's cost, if there is one, or else read the text. Raises `VisionError`, with both
        reasons, if that fails. `urgent`: somebody is waiting for the answer.
        """
        asked = False

        def next_request() -> VisionRequest:
            nonlocal asked
            if not self._may_ask(payer):
                raise VisionError(Text("I do not ask the vision model now."))
            request = latest()
            now = self._clock.monotonic()
            self._breaker.admits(now)
            self._looked_at.append(now)
            asked = True
            if not request.question:
                limit.reschedule(None)
            return request

        if self._model is not None and self._may_ask(payer):
            try:
                async with asyncio.timeout(self._urgent_timeout_s if urgent else None) as limit:
                    reading = await self._model.read(next_request, payer=payer)
            except NoPictureError:
                raise
            except TimeoutError:
                # It may have been busy with another look. Looks that nobody waits for tell whether it works.
                self._breaker.abandon_trial(self._clock.monotonic())
            except VisionError as error:
                # Those that waited while another look failed were refused: an outage counts once.
                if asked:
                    # A copy, because the traceback of what was raised refers to the picture.
                    kept = VisionError(sentence_of(error))
                    open_s = self._breaker.record_failure(self._clock.monotonic(), kept)
                    log.warning("screen_model_failed", problem=error, open_s=open_s)
            else:
                self._breaker.record_success()
                return reading
        try:
            return await self._ocr.read(latest, urgent=urgent)
        except NoPictureError:
            raise
        except VisionError as error:
            if not (limitation := self.limitation(payer)):
                raise
            raise VisionError(
                Text("{limitation} But I cannot read the text either. {why}", limitation=limitation, why=error)
            ) from error

    async def check(self, data: bytes) -> ScreenFrame:
        """Check and decode a picture. See `FrameDecoder.decode`."""
        return await self._decoder.decode(data)

    async def unload(self) -> None:
        """End the processes that decode and read, to free their memory. Called when nobody shares any more. A reading
        in progress fails. A model is not loaded here.
        """
        await self._decoder.rest()
        await self._ocr.kill()

    def _may_ask(self, payer: Payer) -> bool:
        """Return whether the model works, and may look once more within this hour."""
        now = self._clock.monotonic()
        while self._looked_at and now - self._looked_at[0] >= HOUR_S:
            self._looked_at.popleft()
        has_looks = not self._most_per_hour or len(self._looked_at) < self._most_per_hour
        if not has_looks and not self._ceiling_logged:
            log.warning("screen_model_ceiling_reached", looks_per_hour=self._most_per_hour)
        self._ceiling_logged = not has_looks
        return has_looks and not payer.is_used_up and self._breaker.would_admit(now)


def describe_reader(screen: ScreenSettings, llm: LlmSettings) -> Text:
    """Return a plain sentence, for the person who shares, about who sees the pictures."""
    if not screen.model:
        return Text("The bot reads the text itself, on its own computer. The pictures go nowhere else.")
    where = urlsplit(screen.base_url or llm.base_url).hostname or "OpenAI"
    return Text(
        "The vision model {model} at {where} sometimes gets a picture and describes it.",
        model=screen.model,
        where=where,
    )


@asynccontextmanager
async def open_readers(
    screen: ScreenSettings,
    llm: LlmSettings,
    budget: BudgetSettings,
    *,
    clock: Clock,
    meter: CallMeter,
) -> AsyncIterator[ScreenReaders]:
    """Open the readers that the settings choose. Nothing is loaded before somebody shares. `meter`: gets each call of
    the vision model when it has ended.
    """
    async with OcrReader(clock=clock, busy_share=BUSY_SHARE) as ocr, FrameDecoder() as decoder:
        if not screen.model:
            yield ScreenReaders(ocr, decoder, clock=clock)
            return
        # Imported here, because the library takes a second to load.
        from bot.llm.budgeted import Budget
        from bot.llm.openai_vision import OpenAIVision
        from voice.endpoint import Endpoint

        where = screen.base_url or llm.base_url
        endpoint = Endpoint(where, screen.model, llm.key_for(where, screen.api_key), MODEL_TIMEOUT_S)
        counted = Budget(budget)
        async with OpenAIVision(endpoint, counted, meter=meter) as model:
            yield ScreenReaders(ocr, decoder, model, clock=clock, most_per_hour=MOST_LOOKS_PER_HOUR)
