"""A model that one payer calls: the only way in which replies, summaries and translations reach a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bot.llm.port import NO_TOOLS, ChatMessage, OfferedTools, StreamItem
from compaction.errors import CompletionError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from bot.llm.model_calls import Payer
    from compaction.payload import PayloadPart
    from compaction.ports import CompletionAnswer, CompletionRequest


class BilledModel(Protocol):
    """A model that is called at the cost of whom each call names."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        payer: Payer,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
        on_sent: Callable[[Sequence[PayloadPart]], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """See `ChatModel.stream`."""

    async def complete(self, request: CompletionRequest, *, payer: Payer) -> CompletionAnswer:
        """See `compaction.ports.Completion`."""


@dataclass(frozen=True, slots=True)
class PaidModel:
    """A `bot.llm.port.ChatModel` and `compaction.ports.Completion` whose every call `payer` pays for.

    Nothing is folded or translated while the payer's hour is used up. Whether a reply may begin then,
    `bot.participation` decides before there is one.
    """

    billed: BilledModel
    payer: Payer

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""
        return self.billed.model

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
        on_sent: Callable[[Sequence[PayloadPart]], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """See `ChatModel.stream`."""
        return self.billed.stream(
            messages,
            payer=self.payer,
            max_output_tokens=max_output_tokens,
            enforce_budget=enforce_budget,
            tools=tools,
            on_sent=on_sent,
        )

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """See `Completion.complete`."""
        if self.payer.is_used_up:
            raise CompletionError(
                "This server has reached a limit of [participation], such as max_calls_per_hour or "
                "max_tokens_per_day, so the model writes no summaries until enough time has passed.",
                retryable=True,
            )
        return await self.billed.complete(request, payer=self.payer)
