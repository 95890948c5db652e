"""Prepares the prompt of a model call: shortens old tool outputs, trims the messages and checks the token limit. Pure.

`bot.llm` applies this to every call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compaction.budget.tool_outputs import ToolOutputOptions, truncate_old_tool_outputs
from compaction.budget.trim import TrimOptions, TrimResult
from compaction.errors import ContextOverflowError
from compaction.tokens import estimate_text_tokens, message_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compaction.budget.messages import Message

RESERVED_OUTPUT_TOKENS = 4_096


def default_reserve(max_context_tokens: int) -> int:
    """Return how many tokens are kept free for the answer by default: 4,096, or a quarter of the context if that is
    less.
    """
    return min(RESERVED_OUTPUT_TOKENS, max_context_tokens // 4)


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """The token limits of a model, and how to make a prompt fit.

    If `reserved_output_tokens` is None, `default_reserve` decides. If not `enabled`, all messages are sent unchanged,
    and the provider may refuse the call.
    """

    max_context_tokens: int
    reserved_output_tokens: int | None = None
    enabled: bool = True
    trim: TrimOptions = field(default_factory=TrimOptions)
    tool_outputs: ToolOutputOptions = field(default_factory=ToolOutputOptions)

    @property
    def max_input_tokens(self) -> int:
        """Return how many tokens may be sent in one call."""
        reserved = self.reserved_output_tokens
        return max(
            0, self.max_context_tokens - (default_reserve(self.max_context_tokens) if reserved is None else reserved)
        )


@dataclass(frozen=True, slots=True)
class EnforcedContext:
    """Messages that fit the limit. `dropped_count`: how many messages were left out."""

    messages: list[Message]
    truncated: bool
    dropped_count: int


@dataclass(frozen=True, slots=True)
class FinalPrompt:
    """The prompt to send. `dropped`: the messages that were left out, in order.

    `within_budget` can be False only if the budget layer is disabled.
    """

    messages: list[Message]
    token_count: int
    within_budget: bool
    dropped: tuple[Message, ...] = ()


def enforce_context_limit(
    messages: Sequence[Message], max_input_tokens: int, options: TrimOptions | None = None
) -> EnforcedContext:
    """Return messages that fit into `max_input_tokens`. The least important messages are left out.

    Raises ContextOverflowError if not even the system prompts and the current turn fit.
    """
    trimmed = _fitting(messages, max_input_tokens, options or TrimOptions())
    return EnforcedContext(trimmed.messages, bool(trimmed.dropped), len(trimmed.dropped))


def build_final_prompt(messages: Sequence[Message], config: ContextConfig) -> FinalPrompt:
    """Return the prompt of one model call, with old tool outputs shortened and messages left out to fit the budget.

    Raises ContextOverflowError if the prompt cannot be made to fit.
    """
    if not config.enabled:
        tokens = _cost(messages, config.trim.count)
        return FinalPrompt(list(messages), tokens, tokens <= config.max_input_tokens)
    aged = truncate_old_tool_outputs(messages, config.trim.current_step, config.tool_outputs)
    trimmed = _fitting(aged, config.max_input_tokens, config.trim)
    return FinalPrompt(trimmed.messages, trimmed.tokens, within_budget=True, dropped=trimmed.dropped)


def _fitting(messages: Sequence[Message], max_input_tokens: int, options: TrimOptions) -> TrimResult:
    trimmed = TrimResult.of(messages, max_input_tokens, options)
    if trimmed.tokens > max_input_tokens:
        raise ContextOverflowError(current=trimmed.tokens, maximum=max_input_tokens)
    return trimmed


def _cost(messages: Sequence[Message], count: Callable[[str], int] = estimate_text_tokens) -> int:
    return sum(message_tokens(message, count) for message in messages)
