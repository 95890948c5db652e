"""The model's text is passed on without a heading that imitates the transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bot.brain.context import ModelContext
from bot.brain.responder import ModelResponder
from bot.llm.port import NO_TOOLS, ChatMessage, ChatRole, OfferedTools
from compaction.context.build import SessionContext
from compaction.model import Mode, Seq, Turn, TurnKind, TurnPart

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from bot.llm.port import StreamItem


class Parrot:
    """A chat model that streams the given pieces."""

    model = "parrot"

    def __init__(self, *pieces: str) -> None:
        self._pieces = pieces
        self.asked: list[tuple[Sequence[ChatMessage], int]] = []

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
        on_sent: Callable[[Sequence[ChatMessage]], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        self.asked.append((messages, max_output_tokens))
        for piece in self._pieces:
            yield piece


TURN = Turn(Seq(3), TurnKind.SPEECH, 0.0, 1.0, (TurnPart("1", "Ada", "Who brings the lantern?"),))
CONTEXT = ModelContext(
    session=SessionContext(Mode.SUMMARY, 4, Seq(0), None, 0, None, None, (), (), TURN, 1000),
    current=TURN,
    parts=(),
    messages=(ChatMessage(ChatRole.USER, "[21:04] Ada: Who brings the lantern?"),),
    now=0.0,
)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("pieces", "answer"),
    [
        (("Bo ", "brings it."), ["Bo ", "brings it."]),
        (("[21:", "05] Room", "tone: Bo ", "brings it."), ["Bo ", "brings it."]),
        (("[21:05] Bo brings", " it."), ["Bo brings it."]),
        ((" ", "\n", "Yes."), [" \nYes."]),
        (("[laughs] Yes: ", "Bo."), ["[laughs] Yes: ", "Bo."]),
        (("[21:05] Roomtone: ",), []),
        ((), []),
    ],
)
async def test_the_answer_comes_without_a_heading(pieces: tuple[str, ...], answer: list[str]) -> None:
    """A clock time and name in front of the answer are removed; everything else passes unchanged."""
    model = Parrot(*pieces)
    responder = ModelResponder(model, max_output_tokens=77)
    assert [piece async for piece in responder.respond(CONTEXT)] == answer
    assert model.asked == [(CONTEXT.messages, 77)]
