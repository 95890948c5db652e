"""The model's text is passed on as it comes."""

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


@pytest.mark.parametrize("pieces", [(), ("Bo ", "brings it."), ("[laughs] Yes: ", "Bo.")])
async def test_the_models_text_is_the_answer(pieces: tuple[str, ...]) -> None:
    """The model gets the messages of the context, and its words pass unchanged."""
    model = Parrot(*pieces)
    assert [piece async for piece in ModelResponder(model, max_output_tokens=77).respond(CONTEXT)] == list(pieces)
    assert model.asked == [(CONTEXT.messages, 77)]
