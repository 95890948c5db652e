"""Prepares the prompt of a model call: shortens old tool outputs, trims the messages and checks the token limit. Pure.

Every model call passes through `build_final_prompt`: a session's payload (`context.build`) for the first time when it
is built, and all messages again when they are sent (`bot.llm.budgeted`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compaction.budget.tool_outputs import truncate_old_tool_outputs
from compaction.budget.trim import TrimOptions, trim_conversation
from compaction.errors import ContextOverflowError
from compaction.payload import PartKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.payload import PayloadPart

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

    @property
    def max_input_tokens(self) -> int:
        """Return how many tokens may be sent in one call."""
        reserved = self.reserved_output_tokens
        return max(
            0, self.max_context_tokens - (default_reserve(self.max_context_tokens) if reserved is None else reserved)
        )


@dataclass(frozen=True, slots=True)
class EnforcedContext:
    """Messages that fit the limit, and their tokens. `dropped`: the messages that were left out, in order."""

    messages: list[PayloadPart]
    token_count: int
    dropped: tuple[PayloadPart, ...]

    @property
    def truncated(self) -> bool:
        return bool(self.dropped)

    @property
    def dropped_count(self) -> int:
        return len(self.dropped)


@dataclass(frozen=True, slots=True)
class FinalPrompt:
    """The prompt to send. `dropped`: the messages that were left out, in order.

    `within_budget` can be False only if the budget layer is disabled.
    """

    messages: list[PayloadPart]
    token_count: int
    within_budget: bool
    dropped: tuple[PayloadPart, ...] = ()


def enforce_context_limit(
    messages: Sequence[PayloadPart], max_input_tokens: int, options: TrimOptions | None = None
) -> EnforcedContext:
    """Return messages that fit into `max_input_tokens`. The least important messages are left out.

    Raises ContextOverflowError if not even the system prompts and the current turn fit.
    """
    kept = trim_conversation(messages, max_input_tokens, options)
    tokens = sum(message.tokens for message in kept)
    if tokens > max_input_tokens:
        raise ContextOverflowError(current=tokens, maximum=max_input_tokens)
    return EnforcedContext(kept, tokens, _missing(messages, kept))


def _missing(messages: Sequence[PayloadPart], kept: Sequence[PayloadPart]) -> tuple[PayloadPart, ...]:
    """Return the messages of which `kept` has none, notes aside. `kept` has them in the same order."""
    rest = iter(message for message in kept if message.kind is not PartKind.EVICTION_NOTE)
    expected = next(rest, None)
    missing: list[PayloadPart] = []
    for message in messages:
        if message is expected:
            expected = next(rest, None)
        elif message.kind is not PartKind.EVICTION_NOTE:
            missing.append(message)
    return tuple(missing)


def build_final_prompt(messages: Sequence[PayloadPart], config: ContextConfig) -> FinalPrompt:
    """Return the prompt of one model call, with old tool outputs shortened and messages left out to fit the budget.

    Raises ContextOverflowError if the prompt cannot be made to fit.
    """
    if not config.enabled:
        tokens = sum(message.tokens for message in messages)
        return FinalPrompt(list(messages), tokens, tokens <= config.max_input_tokens)
    aged = truncate_old_tool_outputs(messages, config.trim.current_step, config.trim.tool_outputs)
    fitted = enforce_context_limit(aged, config.max_input_tokens, config.trim)
    return FinalPrompt(fitted.messages, fitted.token_count, within_budget=True, dropped=fitted.dropped)
