"""Tries several language models in turn: when one fails, the next is asked.

A failover is possible only until speech has started. So if there are several, each stream is held back until it
contains a speakable sentence, which the voice waits for anyway. A later failure is passed on.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from bot.errors import BotError
from bot.health import FaultKind, HealthFault, outage_fault
from bot.llm.port import (
    NO_ANSWER,
    NO_TOOLS,
    ChatMessage,
    ChatModelError,
    FilteredError,
    OfferedTools,
    StreamEnd,
    StreamItem,
)
from bot.texts.text import OperatorText, Text
from compaction.errors import CompletionError
from voice.circuit_breaker import CircuitBreaker
from voice.speaking.sentences import SentenceSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from bot.clock import Clock
    from bot.llm.budgeted import BudgetedModel
    from bot.llm.model_calls import Payer
    from compaction.payload import PayloadPart
    from compaction.ports import CompletionAnswer, CompletionRequest

log = structlog.get_logger()

# What happens where a model has failed once.
NEXT_ASKS = Text("I try it again with the next question")
# The models' share of the time until the first sound of a reply; the voice needs the rest.
MODELS_SHARE = 0.8
# A summary that is cancelled sooner was not too slow: its session ended.
STALLED_S = 5.0
STALLED = Text("It did not finish a summary in time.")
# How long a failing model is not asked: the first time, and at most after repeated failures.
FIRST_OPEN_S = 15.0
LONGEST_OPEN_S = 300.0
# Where no other model answers meanwhile.
LONGEST_ALONE_S = 60.0


class FallbackModel:
    """A `BilledModel` made of one or more models, best first. Safe for many tasks of one loop.

    `within_s`: time until the first sound of a reply, whatever fails. Summaries may take longer, and have their own
    circuit breakers.
    """

    def __init__(self, models: Sequence[BudgetedModel], *, within_s: float, clock: Clock) -> None:
        self._models = tuple(models)
        longest_s = LONGEST_OPEN_S if len(models) > 1 else LONGEST_ALONE_S
        # The first model's name, for logs and messages, and its budget; the others also keep to their own.
        self.model, self.budget = models[0].model, models[0].budget
        # A model that fails at summaries may still give good replies, so each has two breakers.
        self._breakers, self._summary_breakers = (
            tuple(CircuitBreaker(open_s=FIRST_OPEN_S, longest_open_s=longest_s) for _ in models) for _ in range(2)
        )
        self._within_s = within_s
        self._clock = clock

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        payer: Payer,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
        on_sent: Callable[[Sequence[PayloadPart]], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer of the first model that gives one. See `ChatModel.stream`.

        If all of them rest and the first was too slow, its failure is raised again at once: nobody waits for it before
        its next trial.
        """
        candidates = self._candidates(self._breakers)
        first = candidates[0][1]
        if not first.would_admit(self._clock.monotonic()) and (slow := _too_slow(first)) is not None:
            raise slow.with_traceback(None)
        for number, (model, breaker) in enumerate(candidates):
            rest = candidates[number + 1 :]
            # Only now: a model that need not be asked keeps its trial.
            breaker.admits(self._clock.monotonic())
            stream = model.stream(
                messages,
                payer=payer,
                max_output_tokens=max_output_tokens,
                enforce_budget=enforce_budget,
                tools=tools,
                on_sent=on_sent,
            )
            if len(self._models) > 1:
                stream = self._hold_until_speakable(stream, model.model)
            spoke = False
            try:
                async with aclosing(stream) as pieces:
                    async for piece in pieces:
                        spoke = True
                        yield piece
            except ChatModelError as error:
                open_s = breaker.record_failure(self._clock.monotonic(), error, permanent=not error.retryable)
                if open_s and len(self._models) > 1:
                    log.warning("model_circuit_opened", model=model.model, open_s=open_s, problem=error)
                if spoke or not rest:
                    raise
                log.warning("model_failed_over", model=model.model, next_model=rest[0][0].model, problem=error)
                continue
            except BaseException:
                # Nobody wants the rest, as after a barge-in.
                if spoke:
                    breaker.record_success()
                else:
                    breaker.abandon_trial(self._clock.monotonic())
                raise
            if breaker.failures:
                log.info("model_recovered", model=model.model)
            breaker.record_success()
            return

    def is_absent(self, problem: ChatModelError) -> None:
        """Note that the first model did not answer when it was asked at the start."""
        self._breakers[0].record_failure(self._clock.monotonic(), problem, permanent=True)

    @property
    def answering(self) -> str | None:
        """Return the name of the model that answers now; None: all fail."""
        return next(
            (each.model for each, own in zip(self._models, self._breakers, strict=True) if own.outage is None), None
        )

    def faults(self) -> list[HealthFault]:
        """Return the failing models, each with the model that answers instead, if one does."""
        working, found = self.answering, list[HealthFault]()
        for number, (model, breaker) in enumerate(zip(self._models, self._breakers, strict=True)):
            part = Text("The language model {model}", model=model.model)
            if (outage := breaker.outage) is None:
                # Once may be an accident, and people have seen it.
                if (failed := breaker.last_failures) and not isinstance(failed.problem, FilteredError):
                    found.append(outage_fault(FaultKind.MODELS, part, NEXT_ASKS, failed))
                continue
            instead = Text("{model} answers", model=working) if working else Text("I answer from memory")
            if not working and number == 0 and _too_slow(breaker) is None:
                # Every question tries it again: see `_candidates`.
                instead = Text("I answer from memory and try it again with each question")
                outage = replace(outage, retry_at=None)
            found.append(outage_fault(FaultKind.MODELS, part, instead, outage, blocks=not working))
        return found

    async def complete(self, request: CompletionRequest, *, payer: Payer) -> CompletionAnswer:
        """Return a whole answer of the first model that gives one. See `compaction.ports.Completion`.

        If all fail, raises the error of the first.
        """
        first_error: CompletionError | None = None
        candidates = self._candidates(self._summary_breakers)
        for number, (model, breaker) in enumerate(candidates):
            started = self._clock.monotonic()
            breaker.admits(started)
            try:
                answer = await model.complete(request, payer=payer)
            except CompletionError as error:
                breaker.record_failure(self._clock.monotonic(), error, permanent=not error.retryable)
                first_error = first_error or error
                if number + 1 < len(candidates):
                    log.warning(
                        "summary_failed_over",
                        model=model.model,
                        next_model=candidates[number + 1][0].model,
                        problem=error,
                    )
            except asyncio.CancelledError:
                # Usually the caller's deadline has passed. No time is left to ask another model now, but the next call
                # starts with the next model.
                now = self._clock.monotonic()
                if now - started >= STALLED_S:
                    breaker.record_failure(now, BotError(STALLED), permanent=True)
                else:
                    breaker.abandon_trial(now)
                raise
            else:
                breaker.record_success()
                return answer
        assert first_error is not None, "one model at least is asked"
        raise first_error

    def _candidates(self, breakers: Sequence[CircuitBreaker]) -> list[tuple[BudgetedModel, CircuitBreaker]]:
        """Return the models to ask, best first, each with its own of `breakers`: those which these and the breakers of
        replies allow, or the first model if there is none.
        """
        now = self._clock.monotonic()
        found = [
            (model, own)
            for model, reply, own in zip(self._models, self._breakers, breakers, strict=True)
            if reply.would_admit(now) and own.would_admit(now)
        ]
        return found or [(self._models[0], breakers[0])]

    async def _hold_until_speakable(
        self, stream: AsyncGenerator[StreamItem, None], model: str
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield a stream, held back until it contains a speakable sentence or ends. Each model has the same share of
        the time for that, the last one too: together they end before the reply does. Raises `ChatModelError`.
        """
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
                    OperatorText(
                        "The language model {model} said nothing within {limit_s:.1f} s. Check that it is not "
                        "overloaded, or put a faster one first.",
                        NO_ANSWER,
                        model=model,
                        limit_s=limit_s,
                    ),
                    retryable=True,
                    timeout=True,
                ) from error
            for piece in held:
                yield piece
            async for piece in stream:
                yield piece


def _too_slow(breaker: CircuitBreaker) -> ChatModelError | None:
    """Return a model's last failure if the model let people wait until its time was over."""
    problem = breaker.problem
    return problem if isinstance(problem, ChatModelError) and problem.timeout else None
