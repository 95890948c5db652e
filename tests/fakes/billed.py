"""A server of a language model whose every call is billed, and what takes the bills."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from bot.llm.budgeted import Budget, BudgetedModel
from bot.llm.model_calls import CallMeter, ModelCall, PaidModel, Payer
from bot.llm.port import NO_TOOLS, ChatMessage, EndpointItem, FinishReason, OfferedTools, StreamEnd, Usage
from compaction.ports import CompletionAnswer, CompletionRequest
from compaction.settings import BudgetSettings

PROMPT_TOKENS, ANSWER_TOKENS = 600, 50


class BilledEndpoint:
    """Implements `ModelEndpoint`. A reply tells the number of the call; `written` is what else it answers."""

    model = "billed"

    def __init__(self, written: str = "") -> None:
        self.calls = 0
        self._written = written

    @property
    def budgeted(self) -> BudgetedModel:
        """Return the model as all payers call it."""
        return BudgetedModel(self, Budget(BudgetSettings()))

    def paid_by(self, payer: Payer) -> PaidModel:
        """Return the model as this payer calls it."""
        return PaidModel(self.budgeted, payer)

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        tools: OfferedTools = NO_TOOLS,
    ) -> AsyncGenerator[EndpointItem, None]:
        """Answer with the number of the call."""
        self.calls += 1
        yield f"Answer {self.calls}."
        yield Usage(PROMPT_TOKENS, ANSWER_TOKENS)
        yield StreamEnd(FinishReason.STOP)

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Answer with what was written before."""
        self.calls += 1
        return CompletionAnswer(self._written, "stop", PROMPT_TOKENS, ANSWER_TOKENS)


class Purse(CallMeter):
    """Implements `Payer`: a server that keeps its calls. `is_used_up` may be set. A meter too."""

    def __init__(self, guild_id: int = 10) -> None:
        self.guild_id = guild_id
        self.is_used_up = False
        self.paid: list[ModelCall] = []

    def pay(self, call: ModelCall) -> None:
        """Keep a call."""
        self.paid.append(call)

    on_model_call = pay
