"""Trims, counts and logs every call to a language model for a reply (`ChatModel`) or a summary (`Completion`).

No code asks an endpoint for one of them without it. The provider's bill corrects the next call's count.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from bot.llm.budget import MEMORY_SEARCH, to_message
from bot.llm.model_calls import CountedCall, ignore_call
from bot.llm.port import NO_TOOLS, ChatMessage, ChatRole, StreamEnd, Usage
from compaction.errors import CompletionError, ContextOverflowError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from bot.llm.budget import Budget
    from bot.llm.model_calls import ModelCall
    from bot.llm.port import ModelEndpoint, OfferedTools, StreamItem
    from compaction.budget.prompt import FinalPrompt
    from compaction.payload import PayloadPart
    from compaction.ports import CompletionAnswer, CompletionRequest

log = structlog.get_logger()


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
            [self._budget.part(message) for message in messages],
            max_output_tokens,
            enforce=enforce,
            tool_tokens=tool_tokens,
            searchable=tools.callable_now and any(offer.name == MEMORY_SEARCH for offer in tools.offers),
        )
        call = CountedCall(self.model, "reply", self._budget.estimator, prompt.token_count + tool_tokens)
        end: StreamEnd | None = None
        sent = [replace(to_message(part), kind=None, timestamp=None) for part in prompt.messages]
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
                    call.record_token()
                    if isinstance(piece, StreamEnd):
                        end = piece
                    yield piece
            call.outcome = "answered"
        except Exception:
            call.outcome = "failed"
            raise
        finally:
            self._finish(call, prompt, end=end)

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`. See `compaction.ports.Completion`.

        A request that does not fit is refused, not trimmed, so that a summary covers only turns that the model saw.
        """
        whole = [ChatMessage(ChatRole.SYSTEM, request.system), ChatMessage(ChatRole.USER, request.prompt)]
        try:
            parts = list(map(self._budget.part, whole))
            prompt = self._prompt(parts, request.max_output_tokens, enforce=self._budget.settings.enabled)
        except ContextOverflowError as error:
            raise CompletionError(str(error), retryable=False) from error
        # Some providers bill the form with the prompt. It takes no room here: with a model that has little, it goes to
        # the sampler alone.
        form = 0 if request.schema is None else self._budget.count(json.dumps(request.schema))
        call = CountedCall(self.model, "summary", self._budget.estimator, prompt.token_count + form)
        try:
            answer = await self._endpoint.complete(request)
            call.usage = Usage(answer.prompt_tokens, answer.completion_tokens)
            call.outcome = "answered"
        except CompletionError:
            call.outcome = "failed"
            raise
        finally:
            self._finish(call, prompt)
        return answer

    def _prompt(
        self,
        messages: Sequence[PayloadPart],
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

    def _finish(self, call: CountedCall, prompt: FinalPrompt, *, end: StreamEnd | None = None) -> None:
        call.finish(
            self._on_call,
            message_count=len(prompt.messages),
            dropped_count=len(prompt.dropped),
            within_budget=prompt.within_budget,
            finish_reason=None if end is None else end.reason.value,
            tool_call_count=0 if end is None else len(end.calls),
        )
