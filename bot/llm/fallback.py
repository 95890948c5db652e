"""Several models behind one: the first that is well is asked, and when it fails, the next, before anybody heard a word.

What was heard cannot be taken back. So the words of a model that another stands behind are held until they make a piece
that would be spoken; the voice waits for that anyway. After that a failure is a failure.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from bot.health import DegradedPart
from bot.llm.port import NO_TOOLS, ChatModelError, StreamEnd
from compaction.errors import CompletionError
from voice.circuit_breaker import CircuitBreaker
from voice.speaking.sentences import SentenceSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from bot.clock import Clock
    from bot.llm.budget import Budget
    from bot.llm.budgeted import BudgetedModel
    from bot.llm.port import ChatMessage, OfferedTools, StreamItem
    from compaction.ports import CompletionAnswer, CompletionRequest

log = structlog.get_logger()

# Of the time that a reply has until it sounds, the voice needs some too.
MODELS_SHARE = 0.8
# A summary that is cancelled after less was not waited for in vain: its session ended.
STALLED_S = 5.0
STALLED = "It did not finish a summary in time."
# How long a failing model is not asked: at first, and at most after repeated failures.
FIRST_OPEN_S = 15.0
LONGEST_OPEN_S = 300.0


class FallbackModel:
    """A `ChatModel` and a `Completion` out of one or more models, best first. Safe for many tasks of one loop.

    `within_s`: how soon a reply has to sound, whatever fails. A summary may take longer; its failures count apart.
    """

    def __init__(self, models: Sequence[BudgetedModel], *, within_s: float, clock: Clock) -> None:
        self._models = tuple(models)
        self._breakers = tuple(_breaker() for _ in self._models)
        self._summarising = tuple(_breaker() for _ in self._models)
        self._within_s = within_s
        self._clock = clock

    @property
    def model(self) -> str:
        """Return the first model's name, for logs and people."""
        return self._models[0].model

    @property
    def budget(self) -> Budget:
        """Return what the first model may be sent; the others keep to their own as well."""
        return self._models[0].budget

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer of the first model that gives one. See `ChatModel.stream`."""
        asked = self._worth_asking()
        for number, (model, breaker) in enumerate(asked):
            left = asked[number + 1 :]
            stream = model.stream(
                messages, max_output_tokens=max_output_tokens, enforce_budget=enforce_budget, tools=tools
            )
            spoke = False
            try:
                async with aclosing(self._held(stream, model.model) if left else stream) as pieces:
                    async for piece in pieces:
                        spoke = True
                        yield piece
            except ChatModelError as error:
                self._failed(model, breaker, error)
                if spoke or not left:
                    raise
                log.warning("model_failed_over", model=model.model, next_model=left[0][0].model, problem=str(error))
                continue
            if breaker.failures:
                log.info("model_well_again", model=model.model)
            breaker.record_success()
            return

    def degraded_parts(self) -> list[DegradedPart]:
        """Return which models fail, and who answers instead."""
        both = list(zip(self._models, self._breakers, strict=True))
        well = [model.model for model, breaker in both if breaker.outage is None]
        found = []
        for number, (model, breaker) in enumerate(both):
            if (outage := breaker.outage) is None:
                continue
            instead = f"{well[0]} answers" if well else "no other answers either"
            if not well and number == 0:
                # Where none is well the first is asked whatever it did: see `_worth_asking`.
                instead, outage = f"{instead}, and each question tries it again", replace(outage, retry_at=None)
            found.append(DegradedPart(f"the language model {model.model}", instead, outage))
        return found

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer of the first model that gives one. See `compaction.ports.Completion`.

        Raises the first one's error when all fail.
        """
        first_error: CompletionError | None = None
        asked = self._worth_asking_for_summaries()
        for number, (model, breaker) in enumerate(asked):
            begun = self._clock.monotonic()
            try:
                answer = await model.complete(request)
            except CompletionError as error:
                breaker.record_failure(self._clock.monotonic(), str(error), permanent=not error.retryable)
                first_error = first_error or error
                if number + 1 < len(asked):
                    next_model = asked[number + 1][0].model
                    log.warning("summary_failed_over", model=model.model, next_model=next_model, problem=str(error))
            except asyncio.CancelledError:
                # The caller's deadline, mostly: there is no time left for another, but the next try begins with it.
                if self._clock.monotonic() - begun >= STALLED_S:
                    breaker.record_failure(self._clock.monotonic(), STALLED, permanent=True)
                raise
            else:
                breaker.record_success()
                return answer
        assert first_error is not None, "one model at least is asked"
        raise first_error

    def _worth_asking(self) -> list[tuple[BudgetedModel, CircuitBreaker]]:
        """Return the models that are well enough, best first; the best where none is."""
        now = self._clock.monotonic()
        all_of_them = list(zip(self._models, self._breakers, strict=True))
        return [each for each in all_of_them if each[1].admits(now)] or all_of_them[:1]

    def _worth_asking_for_summaries(self) -> list[tuple[BudgetedModel, CircuitBreaker]]:
        """Return the same for summaries: what is too much for a model there says nothing about replies."""
        now = self._clock.monotonic()
        found = [
            (model, own)
            for model, reply, own in zip(self._models, self._breakers, self._summarising, strict=True)
            if reply.outage is None and own.admits(now)
        ]
        return found or [(self._models[0], self._summarising[0])]

    def _failed(self, model: BudgetedModel, breaker: CircuitBreaker, error: ChatModelError) -> None:
        open_s = breaker.record_failure(self._clock.monotonic(), str(error), permanent=not error.retryable)
        if open_s and len(self._models) > 1:
            log.warning("model_circuit_opened", model=model.model, open_s=open_s, problem=str(error))

    async def _held(self, stream: AsyncGenerator[StreamItem, None], model: str) -> AsyncGenerator[StreamItem, None]:
        """Yield a stream from where something of it can be spoken, or it has ended. Raises `ChatModelError`."""
        limit_s = MODELS_SHARE * self._within_s / len(self._models)
        splitter = SentenceSplitter()
        held: list[StreamItem] = []
        async with aclosing(stream):
            try:
                async with asyncio.timeout(limit_s):
                    async for piece in stream:
                        held.append(piece)
                        if isinstance(piece, StreamEnd):
                            break
                        splitter.feed(piece)
                        if splitter.spoke:
                            break
            except TimeoutError as error:
                raise ChatModelError(
                    f"The language model {model} said nothing within {limit_s:.1f} s. Check that it is not overloaded, "
                    "or put a faster one first.",
                    retryable=True,
                    timeout=True,
                ) from error
            for piece in held:
                yield piece
            async for piece in stream:
                yield piece


def _breaker() -> CircuitBreaker:
    return CircuitBreaker(open_s=FIRST_OPEN_S, longest_open_s=LONGEST_OPEN_S)
