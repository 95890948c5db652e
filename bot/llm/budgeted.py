"""Trims, counts and logs every call to a language model. No code calls an endpoint without it.

It serves replies (`ChatModel`) and summaries (`Completion`). The provider's bill corrects the next call's count.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.llm.budget import MEMORY_SEARCH, to_budget_message
from bot.llm.port import NO_TOOLS, ChatMessage, ChatRole, StreamEnd, Usage
from compaction.budget.messages import Message
from compaction.errors import CompletionError, ContextOverflowError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from bot.llm.budget import Budget
    from bot.llm.port import ModelEndpoint, OfferedTools, StreamItem
    from compaction.budget.prompt import FinalPrompt
    from compaction.ports import CompletionAnswer, CompletionRequest

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a language model that has ended, for metrics.

    `purpose`: reply or summary. `outcome`: answered, failed or cancelled. `prompt_tokens`: as billed, or estimated if
    the endpoint does not say. `completion_tokens`: as billed, or 0.
    """

    model: str
    purpose: str
    outcome: str
    prompt_tokens: int
    completion_tokens: int
    first_token_s: float | None
    duration_s: float


def ignore_call(call: ModelCall) -> None:
    """Do nothing."""


@dataclass(slots=True)
class _Call:
    """One call in progress, for its log line."""

    purpose: str
    prompt: FinalPrompt
    started_at: float
    tool_tokens: int = 0
    usage: Usage | None = None
    end: StreamEnd | None = None
    first_token_at: float | None = None
    outcome: str = "cancelled"

    def record_usage(self, usage: Usage) -> None:
        """Record the usage that the provider reports; the last report counts."""
        self.usage = usage


class BudgetedModel:
    """A model behind its budget (`bot.llm.port.ChatModel` and `compaction.ports.Completion`). Safe for many tasks."""

    def __init__(
        self, endpoint: ModelEndpoint, budget: Budget, *, on_call: Callable[[ModelCall], None] = ignore_call
    ) -> None:
        """`on_call`: gets each call when it has ended."""
        self._on_call = on_call
        self._endpoint = endpoint
        self._budget = budget

    @property
    def model(self) -> str:
        return self._endpoint.model

    @property
    def budget(self) -> Budget:
        return self._budget

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
        on_sent: Callable[[Sequence[ChatMessage]], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer piece by piece. Raises `ContextOverflowError`, `ChatModelError`. See `ChatModel.stream`."""
        enforce = self._budget.settings.enabled if enforce_budget is None else enforce_budget
        if enforce:
            tools = self._budget.affordable(tools, max_output_tokens=max_output_tokens)
        tool_tokens = self._budget.cost_of(tools)
        prompt = self._prompt(
            [to_budget_message(message) for message in messages],
            max_output_tokens,
            enforce=enforce,
            tool_tokens=tool_tokens,
            searchable=tools.callable_now and any(offer.name == MEMORY_SEARCH for offer in tools.offers),
        )
        call = _Call("reply", prompt, time.monotonic(), tool_tokens=tool_tokens)
        sent = [_to_chat_message(message) for message in prompt.messages]
        if on_sent is not None:
            on_sent(sent)
        stream = self._endpoint.stream(
            sent,
            max_output_tokens=max_output_tokens,
            tools=tools,
            on_usage=call.record_usage,
        )
        try:
            async with aclosing(stream):
                async for piece in stream:
                    if call.first_token_at is None:
                        call.first_token_at = time.monotonic()
                    if isinstance(piece, StreamEnd):
                        call.end = piece
                    yield piece
            call.outcome = "answered"
        except Exception:
            call.outcome = "failed"
            raise
        finally:
            self._finish(call)

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`. See `compaction.ports.Completion`.

        A request that does not fit is refused, not trimmed, so that a summary covers only turns that the model saw.
        """
        whole = [Message(ChatRole.SYSTEM, request.system), Message(ChatRole.USER, request.prompt)]
        try:
            prompt = self._prompt(whole, request.max_output_tokens, enforce=self._budget.settings.enabled)
        except ContextOverflowError as error:
            raise CompletionError(str(error), retryable=False) from error
        call = _Call("summary", prompt, time.monotonic())
        try:
            answer = await self._endpoint.complete(request)
            call.usage = Usage(answer.prompt_tokens, answer.completion_tokens)
            call.outcome = "answered"
        except CompletionError:
            call.outcome = "failed"
            raise
        finally:
            self._finish(call)
        return answer

    def _prompt(
        self,
        messages: Sequence[Message],
        max_output_tokens: int,
        *,
        enforce: bool,
        tool_tokens: int = 0,
        searchable: bool = False,
    ) -> FinalPrompt:
        prompt = self._budget.final_prompt(
            messages,
            max_output_tokens=max_output_tokens,
            enforce=enforce,
            searchable=searchable,
            tool_tokens=tool_tokens,
        )
        if prompt.dropped:
            log.warning(
                "context_truncated",
                model=self.model,
                dropped_count=len(prompt.dropped),
                sent_count=len(prompt.messages),
                estimated_prompt_tokens=prompt.token_count,
            )
        return prompt

    def _finish(self, call: _Call) -> None:
        """Log the cost of the call, and correct the estimator."""
        estimator = self._budget.estimator
        usage = call.usage or Usage(None, None)
        count = call.prompt.token_count + call.tool_tokens
        expected = estimator.calibration.billed(count)
        log.info(
            "model_call_finished",
            purpose=call.purpose,
            model=self.model,
            outcome=call.outcome,
            message_count=len(call.prompt.messages),
            dropped_count=len(call.prompt.dropped),
            estimated_prompt_tokens=expected,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            counted_exactly=estimator.exact,
            within_budget=call.prompt.within_budget,
            finish_reason=None if call.end is None else call.end.reason.value,
            tool_call_count=0 if call.end is None else len(call.end.calls),
            first_token_ms=None if call.first_token_at is None else _ms(call.first_token_at - call.started_at),
            duration_ms=_ms(time.monotonic() - call.started_at),
        )
        ended_at = time.monotonic()
        self._on_call(
            ModelCall(
                self.model,
                call.purpose,
                call.outcome,
                expected if usage.prompt_tokens is None else usage.prompt_tokens,
                usage.completion_tokens or 0,
                None if call.first_token_at is None else call.first_token_at - call.started_at,
                ended_at - call.started_at,
            )
        )
        if usage.prompt_tokens is not None and estimator.learn(count=count, reported=usage.prompt_tokens):
            log.info(
                "token_count_corrected",
                model=self.model,
                factor=round(estimator.calibration.factor, 3),
                extra_tokens=estimator.calibration.extra_tokens,
            )


def _to_chat_message(message: Message) -> ChatMessage:
    return ChatMessage(
        role=ChatRole.SYSTEM if message.is_system else ChatRole(message.role),
        content=message.content,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        name=message.name,
    )


def _ms(seconds: float) -> float:
    return round(1_000 * seconds, 1)
