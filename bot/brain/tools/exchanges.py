"""What tools answered in a room lately: it stays before the model for a while, each where it was said.

'And what does it say further down?' can only be answered by who still has the file. How outputs age, and when they
leave, is the budget's business (`compaction.budget.tool_outputs`); here only the oldest are let go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.llm.port import ChatMessage, ChatRole

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from compaction.budget.messages import MessageToolCall
    from compaction.model import Seq

# Questions whose calls are kept: older ones are placeholders by then, whatever they found.
MOST_QUESTIONS = 8


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """One step of an answer: what the model wanted called, each with what came of it. `words`: what it said before."""

    calls: tuple[MessageToolCall, ...]
    results: tuple[str, ...]
    words: str = ""

    def messages(self) -> list[ChatMessage]:
        """Return the step as a model reads it: the calls, then a result for each."""
        told = [
            ChatMessage(ChatRole.TOOL, result, tool_call_id=call.id, name=call.name)
            for call, result in zip(self.calls, self.results, strict=True)
        ]
        return [ChatMessage(ChatRole.ASSISTANT, self.words, tool_calls=self.calls), *told]


class ToolExchanges:
    """The steps of a room's last questions, by the turn that asked."""

    def __init__(self) -> None:
        self._by_turn: dict[int, tuple[ToolExchange, ...]] = {}

    def keep(self, turn: Seq, steps: Sequence[ToolExchange]) -> None:
        """Keep what came of one question."""
        if not steps:
            return
        self._by_turn[turn] = tuple(steps)
        while len(self._by_turn) > MOST_QUESTIONS:
            del self._by_turn[next(iter(self._by_turn))]

    def clear(self) -> None:
        """Let go of everything."""
        self._by_turn.clear()

    def steps(self, turn: Seq) -> int:
        """Return how many steps the answer to a turn took besides the last, as far as that is kept."""
        return len(self._by_turn.get(turn, ()))

    def within(
        self, room: int, *, turns: Container[int], cost: Callable[[ChatMessage], int]
    ) -> dict[int, list[ChatMessage]]:
        """Return the messages of the newest questions among `turns` that cost at most `room` together, by turn."""
        kept: dict[int, list[ChatMessage]] = {}
        for turn, steps in reversed(self._by_turn.items()):
            if turn not in turns:
                continue
            messages = [message for step in steps for message in step.messages()]
            room -= sum(map(cost, messages))
            if room < 0:
                break
            kept[turn] = messages
        return kept


def insert_exchanges(
    messages: Iterable[tuple[ChatMessage, Seq | None]], exchanges: dict[int, list[ChatMessage]]
) -> tuple[ChatMessage, ...]:
    """Return the messages with each question's exchanges right behind it. What is asked no more has none."""
    whole: list[ChatMessage] = []
    for message, turn in messages:
        whole.append(message)
        if turn is not None:
            whole += exchanges.get(turn, ())
    return tuple(whole)
