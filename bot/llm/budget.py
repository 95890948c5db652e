"""The token budget of one model, used both to build prompts and to send them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from compaction.budget.estimator import Estimator
from compaction.budget.messages import Message
from compaction.budget.prompt import ContextConfig, build_final_prompt
from compaction.budget.tool_outputs import ToolOutputOptions
from compaction.budget.trim import TrimOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bot.llm.port import ChatMessage, OfferedTools, ToolOffer
    from compaction.budget.prompt import FinalPrompt
    from compaction.settings import BudgetSettings

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
        return self.estimator.text(text)

    def room(self, *, max_output_tokens: int = 0) -> int:
        """Return the raw number of tokens that one call may send if its answer has at most `max_output_tokens`."""
        longer_answer = max(0, max_output_tokens - self.settings.reserved)
        return self.estimator.room(max(0, self.settings.max_input_tokens - longer_answer))

    @property
    def tool_outputs(self) -> ToolOutputOptions:
        """Return when old tool outputs are shortened."""
        settings = self.settings
        return ToolOutputOptions(
            max_tool_output_age=settings.max_tool_output_age,
            max_tool_output_tokens=settings.max_tool_output_tokens,
            preserve_recent_files=settings.preserve_recent_files,
            count=self.count,
        )

    def cost_of(self, tools: OfferedTools) -> int:
        """Return the raw number of tokens that the tools of a call cost."""
        return offers_tokens(tools.offers, self.count)

    def affordable(self, tools: OfferedTools, *, max_output_tokens: int) -> OfferedTools:
        """Return the tools that a call may offer this model. Prompts are built for the first model, and a model that
        stands in for it may take much less.
        """
        room = self.room(max_output_tokens=max_output_tokens) // OFFERS_SHARE
        return replace(tools, offers=offers_within(tools.offers, room, self.count))

    def final_prompt(
        self,
        messages: Sequence[Message],
        *,
        max_output_tokens: int,
        enforce: bool = True,
        searchable: bool = False,
        tool_tokens: int = 0,
    ) -> FinalPrompt:
        """Trim `messages` to fit beside tools that cost `tool_tokens`. Raises `ContextOverflowError` if that is
        impossible.
        """
        settings = self.settings
        trim = TrimOptions(
            trim_strategy=settings.trim_strategy,
            preserve_system_prompt=settings.preserve_system_prompt,
            preserve_recent_turns=settings.preserve_recent_turns,
            max_tool_output_age=settings.max_tool_output_age,
            searchable=searchable,
            count=self.count,
        )
        room = max(0, self.room(max_output_tokens=max_output_tokens) - tool_tokens)
        config = ContextConfig(
            max_context_tokens=room,
            reserved_output_tokens=0,
            enabled=enforce,
            trim=trim,
            tool_outputs=self.tool_outputs,
        )
        return build_final_prompt(messages, config)


def to_budget_message(message: ChatMessage) -> Message:
    """Return a message as `compaction.budget` takes it."""
    return Message(
        role=message.role.value,
        content=message.content,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        name=message.name,
        kind=message.kind,
        timestamp=message.timestamp,
    )


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


def offers_tokens(offers: Iterable[ToolOffer], count: Callable[[str], int]) -> int:
    """Return the raw number of tokens of tool descriptions."""
    return sum(
        OFFER_OVERHEAD_TOKENS + count(f"{offer.name} {offer.description} {json.dumps(offer.parameters)}")
        for offer in offers
    )
