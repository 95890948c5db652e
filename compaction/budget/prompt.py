"""Prepares the prompt of a model call: shortens old tool outputs, trims the messages and checks the token limit. Pure.

`summarize_context` quotes the turns that were left out (spec 4, phase 3).

Every model call passes through `build_final_prompt`: a session's payload (`context.build`) for the first time when it
is built, and all messages again when they are sent (`bot.llm.budgeted`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from compaction.budget.tool_outputs import truncate_old_tool_outputs
from compaction.budget.trim import TrimOptions, trim_conversation
from compaction.errors import ContextOverflowError
from compaction.payload import PartKind, PayloadPart
from compaction.summary.extractive import quote_turns
from compaction.summary.port import MAX_SUMMARY_CHARS
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import Turn


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """How many tokens one call may send, and how to make a prompt fit.

    If not `enabled`, all messages are sent unchanged, and the provider may refuse the call.
    """

    max_input_tokens: int
    enabled: bool = True
    trim: TrimOptions = field(default_factory=TrimOptions)


@dataclass(frozen=True, slots=True)
class FinalPrompt:
    """The prompt to send. `dropped`: the messages that were left out, in order.

    `within_budget` can be False only if the budget layer is disabled.
    """

    messages: list[PayloadPart]
    token_count: int
    within_budget: bool
    dropped: tuple[PayloadPart, ...] = ()

    @property
    def truncated(self) -> bool:
        return bool(self.dropped)

    @property
    def dropped_count(self) -> int:
        return len(self.dropped)


def enforce_context_limit(
    messages: Sequence[PayloadPart], max_input_tokens: int, options: TrimOptions | None = None
) -> FinalPrompt:
    """Return messages that fit into `max_input_tokens`. The least important messages are left out.

    Raises ContextOverflowError if not even the system prompts and the current turn fit.
    """
    kept = trim_conversation(messages, max_input_tokens, options)
    tokens = sum(message.tokens for message in kept)
    if tokens > max_input_tokens:
        raise ContextOverflowError(current=tokens, maximum=max_input_tokens)
    # An earlier note of what is left out is told in the new one.
    sent = {id(message) for message in kept}
    gone = (each for each in messages if id(each) not in sent and each.kind is not PartKind.EVICTION_NOTE)
    return FinalPrompt(kept, tokens, within_budget=True, dropped=tuple(gone))


def build_final_prompt(messages: Sequence[PayloadPart], config: ContextConfig) -> FinalPrompt:
    """Return the prompt of one model call, with old tool outputs shortened and messages left out to fit the budget.

    Raises ContextOverflowError if the prompt cannot be made to fit.
    """
    if not config.enabled:
        tokens = sum(message.tokens for message in messages)
        return FinalPrompt(list(messages), tokens, tokens <= config.max_input_tokens)
    aged = truncate_old_tool_outputs(messages, options=config.trim.tool_outputs)
    return enforce_context_limit(aged, config.max_input_tokens, config.trim)


class ContextSummary(NamedTuple):
    """Quotes of turns; empty if nothing in them is worth keeping. `original_tokens`: of their words."""

    summary: str
    original_tokens: int


def summarize_context(turns: Sequence[Turn], *, max_summary_chars: int = MAX_SUMMARY_CHARS) -> ContextSummary:
    """Return the best sentences of the turns, with their speakers. Deterministic.

    No model writes it: a reply can't wait for a second one, and what leaves the window is folded by a model anyway.
    """
    tokens = sum(estimate_text_tokens(turn.text) for turn in turns)
    return ContextSummary(quote_turns(tuple(turns), max_chars=max_summary_chars), tokens)
