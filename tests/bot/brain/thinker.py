"""A model that streams scripts, and what a reply to one turn is asked with."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

from bot.brain.context import ModelContext
from bot.brain.tools.toolbox import Toolbox
from bot.llm.port import NO_TOOLS, ChatMessage, ChatModelError, ChatRole, OfferedTools, StreamItem
from compaction.context.build import SessionContext
from compaction.model import Mode, Seq, Turn, TurnKind, TurnPart
from compaction.payload import PayloadPart

TURN = Turn(Seq(3), TurnKind.SPEECH, 0.0, 1.0, (TurnPart("1", "Ada", "Who brings the lantern?"),))
CONTEXT = ModelContext(
    session=SessionContext(Mode.SUMMARY, Seq(0), None, 0, None, None, (), (), TURN, 1000),
    current=TURN,
    asked=TURN,
    parts=(),
    messages=(ChatMessage(ChatRole.USER, "[21:04] Ada: Who brings the lantern?"),),
    now=0.0,
    tools=Toolbox().for_asker(),
)


class Thinker:
    """A model that streams one script for each call and keeps what it was asked."""

    model = "thinker"

    def __init__(self, *scripts: tuple[StreamItem | ChatModelError, ...]) -> None:
        self._scripts = list(scripts)
        self.asked: list[tuple[Sequence[ChatMessage], OfferedTools]] = []
        self.most_tokens = 0

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
        on_sent: Callable[[Sequence[PayloadPart]], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the next script; the last one is repeated."""
        self.asked.append((messages, tools))
        self.most_tokens = max_output_tokens
        for piece in self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]:
            if isinstance(piece, ChatModelError):
                raise piece
            yield piece
