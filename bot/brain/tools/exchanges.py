"""Recent tool calls and results of a room. They stay in the prompt for a few questions, right after their question.

A model can answer 'And what does it say further down?' only if it still has the file. The token budget
(`compaction.budget.tool_outputs`) shortens results with age; this module only drops the oldest questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.llm.port import ChatMessage, ChatRole

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from bot.brain.tools.frozen_calls import FrozenCall
    from compaction.model import Seq
    from compaction.payload import MessageToolCall

    # A frozen call is read as what has become of it by then.
    ToolResult = str | FrozenCall

# Questions whose calls are kept. Results of older ones are already cut to placeholders.
MOST_QUESTIONS = 8
# Steps of one question that are kept. Unasked replies to the same turn add theirs each time.
MOST_STEPS = 16


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """One step of a reply: the model's calls and their results, in order. `text`: what the model said before them."""

    calls: tuple[MessageToolCall, ...]
    results: tuple[ToolResult, ...]
    text: str = ""

    def messages(self) -> list[ChatMessage]:
        """Return the step as chat messages: the calls, then a result for each."""
        results = [
            ChatMessage(ChatRole.TOOL, read_result(result), tool_call_id=call.id, name=call.name)
            for call, result in zip(self.calls, self.results, strict=True)
        ]
        return [ChatMessage(ChatRole.ASSISTANT, self.text, tool_calls=self.calls), *results]


def read_result(result: ToolResult) -> str:
    """Return what a model reads of a result now."""
    return result if isinstance(result, str) else result.told


class ToolExchanges:
    """The tool steps of a room's last replies, by the turn of the question."""

    def __init__(self) -> None:
        self._by_turn: dict[int, tuple[ToolExchange, ...]] = {}
        # How often everything was dropped.
        self.clearings = 0
        # How many steps were ever recorded, those that were dropped included.
        self.recorded = 0

    def record(self, turn: Seq, steps: Sequence[ToolExchange]) -> None:
        """Record steps of the reply to one question, after those that another model took for it. Drop the oldest steps
        and questions if there are too many.
        """
        if not steps:
            return
        self.recorded += len(steps)
        self._by_turn[turn] = (*self._by_turn.get(turn, ()), *steps)[-MOST_STEPS:]
        while len(self._by_turn) > MOST_QUESTIONS:
            del self._by_turn[next(iter(self._by_turn))]

    def clear(self) -> None:
        self._by_turn.clear()
        self.clearings += 1

    def messages(self, turns: Container[int]) -> dict[int, list[ChatMessage]]:
        """Return the messages of the recorded questions among `turns`, by turn, the newest question first."""
        return {
            turn: [message for step in steps for message in step.messages()]
            for turn, steps in reversed(self._by_turn.items())
            if turn in turns
        }
