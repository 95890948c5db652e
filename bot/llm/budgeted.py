"""The token budget of one model, and the model behind it: every call for a reply or a summary is trimmed, counted and
logged.

No code asks an endpoint for one of them without it. The provider's bill corrects the next call's count.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from bot.llm.model_calls import UNMETERED, CallMeter, CountedCall, Payer
from bot.llm.port import (
    NO_TOOLS,
    ChatMessage,
    ChatRole,
    ModelEndpoint,
    OfferedTools,
    StreamEnd,
    StreamItem,
    ToolOffer,
    Usage,
)
from compaction.budget.estimator import Estimator
from compaction.budget.prompt import ContextConfig, FinalPrompt, build_final_prompt
from compaction.budget.tool_outputs import ToolOutputOptions
from compaction.budget.trim import TrimOptions
from compaction.errors import CompletionError, ContextOverflowError, RequestTooLongError
from compaction.payload import PartKind, PayloadPart, make_part, recount
from compaction.tokens import HasContent, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from compaction.ports import CompletionAnswer, CompletionRequest
    from compaction.settings import BudgetSettings
    from voice.realtime.port import RealtimeTool

log = structlog.get_logger()

# Name of the tool that finds what was left out of a prompt.
MEMORY_SEARCH = "memory_search"
# Tokens that a chat template adds around one tool.
OFFER_OVERHEAD_TOKENS = 12
# Tool descriptions take at most a quarter of a prompt, because MCP servers write long ones.
OFFERS_SHARE = 4


class Budget:
    """The budget of one model. Counts are raw; limits are corrected by what the provider has billed so far.

    Safe for all tasks of one loop.
    """

    def __init__(self, settings: BudgetSettings, estimator: Estimator | None = None) -> None:
        self.settings = settings
        self.estimator = Estimator() if estimator is None else estimator

    def count(self, text: str) -> int:
        return self.estimator.count(text)

    def tokens(self, messages: Iterable[HasContent]) -> int:
        """Return the raw number of tokens of messages, as this model counts them."""
        return estimate_tokens(messages, self.estimator.count)

    def room(self, *, max_output_tokens: int = 0) -> int:
        """Return the raw number of tokens that one call may send if its answer has at most `max_output_tokens`."""
        longer_answer = max(0, max_output_tokens - self.settings.reserved)
        return self.estimator.calibration.room(max(0, self.settings.max_input_tokens - longer_answer))

    @property
    def trim_options(self) -> TrimOptions:
        """Return how a prompt is made to fit, by the settings."""
        settings = self.settings
        return TrimOptions(
            trim_strategy=settings.trim_strategy,
            preserve_system_prompt=settings.preserve_system_prompt,
            preserve_recent_turns=settings.preserve_recent_turns,
            target_utilization=settings.target_utilization,
            min_keep_messages=settings.min_keep_messages,
            eviction_note=settings.eviction_note,
            summarize_on_truncate=settings.summarize_on_truncate,
            tool_outputs=ToolOutputOptions(
                max_tool_output_age=settings.max_tool_output_age,
                max_tool_output_tokens=settings.max_tool_output_tokens,
                preserve_recent_files=settings.preserve_recent_files,
                count=self.count,
            ),
        )

    def final_prompt(
        self,
        messages: Sequence[PayloadPart],
        *,
        max_output_tokens: int,
        enforce: bool = True,
        searchable: bool = False,
        tool_tokens: int = 0,
    ) -> FinalPrompt:
        """Trim `messages` to fit beside tools that cost `tool_tokens`. Raises `ContextOverflowError` if that is
        impossible.
        """
        room = max(0, self.room(max_output_tokens=max_output_tokens) - tool_tokens)
        trim = replace(self.trim_options, searchable=searchable)
        return build_final_prompt(messages, ContextConfig(room, enabled=enforce, trim=trim))


def to_part(message: ChatMessage, count: Callable[[str], int]) -> PayloadPart:
    """Return a message as `compaction.budget` takes it, with its tokens counted."""
    if message.part is not None:
        return recount(message.part, count)
    is_tool = message.role is ChatRole.TOOL or message.tool_calls
    kind = PartKind.TOOL if is_tool else PartKind.SYSTEM if message.role is ChatRole.SYSTEM else PartKind.TURN
    return make_part(
        message.role.value,
        kind,
        message.content,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        name=message.name,
        count=count,
    )


def to_message(part: PayloadPart) -> ChatMessage:
    """Return a part as a language model takes it."""
    return ChatMessage(ChatRole(part.role), part.content, part.tool_calls, part.tool_call_id, part.name, part)


def offers_within(offers: Sequence[ToolOffer], room: int, count: Callable[[str], int]) -> tuple[ToolOffer, ...]:
    """Return the first offers that fit into `room` tokens. Logs the others."""
    kept: list[ToolOffer] = []
    for offer in offers:
        cost = offers_tokens([offer], count)
        if cost <= room:
            kept.append(offer)
            room -= cost
    if len(kept) < len(offers):
        log.warning("tools_left_out", left_out=[offer.name for offer in offers if offer not in kept])
    return tuple(kept)


def offers_tokens(offers: Iterable[ToolOffer | RealtimeTool], count: Callable[[str], int]) -> int:
    """Return the raw number of tokens of tool descriptions."""
    return sum(
        OFFER_OVERHEAD_TOKENS + count(f"{offer.name} {offer.description} {json.dumps(offer.parameters)}")
        for offer in offers
    )


class BudgetedModel:
    """A model behind its budget (`bot.llm.model_calls.BilledModel`). Safe for many tasks."""

    def __init__(self, endpoint: ModelEndpoint, budget: Budget, *, meter: CallMeter = UNMETERED) -> None:
        """`meter`: gets each call when it has ended."""
        self._meter = meter
        self._endpoint = endpoint
        self.model = endpoint.model
        self.budget = budget

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
        """Yield the answer piece by piece. Raises `ContextOverflowError`, `ChatModelError`. See `ChatModel.stream`."""
        enforce = self.budget.settings.enabled if enforce_budget is None else enforce_budget
        if enforce:
            # Prompts are built for the first model, and a model that stands in for it may take much less.
            room = self.budget.room(max_output_tokens=max_output_tokens) // OFFERS_SHARE
            tools = replace(tools, offers=offers_within(tools.offers, room, self.budget.count))
        tool_tokens = offers_tokens(tools.offers, self.budget.count)
        prompt = self.budget.final_prompt(
            [to_part(message, self.budget.count) for message in messages],
            max_output_tokens=max_output_tokens,
            enforce=enforce,
            tool_tokens=tool_tokens,
            searchable=tools.callable_now and any(offer.name == MEMORY_SEARCH for offer in tools.offers),
        )
        end: StreamEnd | None = None
        sent = [to_message(part) for part in prompt.messages]
        call = CountedCall(self.model, "reply", payer, self.budget.estimator, self.budget.tokens(sent) + tool_tokens)
        if on_sent is not None:
            on_sent(prompt.messages)
        try:
            async with aclosing(
                self._endpoint.stream(sent, max_output_tokens=max_output_tokens, tools=tools)
            ) as stream:
                async for piece in stream:
                    if isinstance(piece, Usage):
                        call.usage = piece
                        continue
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

    async def complete(self, request: CompletionRequest, *, payer: Payer) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`. See `compaction.ports.Completion`.

        A request that does not fit is refused, not trimmed, so that a summary covers only turns that the model saw.
        """
        whole = [ChatMessage(ChatRole.SYSTEM, request.system), ChatMessage(ChatRole.USER, request.prompt)]
        request = self._within_room(request, self.budget.tokens(whole))
        try:
            prompt = self.budget.final_prompt(
                [to_part(message, self.budget.count) for message in whole],
                max_output_tokens=request.max_output_tokens,
                enforce=self.budget.settings.enabled,
            )
        except ContextOverflowError as error:
            raise RequestTooLongError(str(error), retryable=False) from error
        # Some providers bill the form with the prompt. It takes no room here: with a model that has little, it goes to
        # the sampler alone.
        form = 0 if request.schema is None else self.budget.count(json.dumps(request.schema))
        call = CountedCall(self.model, "summary", payer, self.budget.estimator, self.budget.tokens(whole) + form)
        finish_reason: str | None = None
        try:
            answer = await self._endpoint.complete(request)
            call.usage = Usage(answer.prompt_tokens, answer.completion_tokens)
            call.outcome, finish_reason = "answered", answer.finish_reason
        except CompletionError:
            call.outcome = "failed"
            raise
        finally:
            self._finish(call, prompt, finish_reason=finish_reason)
        return answer

    def _within_room(self, request: CompletionRequest, tokens: int) -> CompletionRequest:
        """Return the request with an answer as long as a small model has room for beside it: what is cut off is used as
        far as it is whole, and a request without room is not sent at all.
        """
        settings = self.budget.settings
        left = settings.max_context_tokens - self.budget.estimator.calibration.billed(tokens)
        most = max(settings.reserved, left) if settings.enabled else request.max_output_tokens
        return replace(request, max_output_tokens=min(request.max_output_tokens, most))

    def _finish(
        self, call: CountedCall, prompt: FinalPrompt, *, end: StreamEnd | None = None, finish_reason: str | None = None
    ) -> None:
        if prompt.dropped:
            log.warning(
                "context_truncated",
                model=self.model,
                dropped_count=len(prompt.dropped),
                sent_count=len(prompt.messages),
                estimated_prompt_tokens=prompt.token_count,
            )
        call.finish(
            self._meter,
            message_count=len(prompt.messages),
            dropped_count=len(prompt.dropped),
            within_budget=prompt.within_budget,
            finish_reason=finish_reason if end is None else end.reason.value,
            tool_call_count=0 if end is None else len(end.calls),
        )
