"""Runs the tool calls of a speech-to-speech reply, with the permissions of the person who asked.

They are recorded for the language model: if the session fails, that answers and must not do the same again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.tools.exchanges import ToolExchange, read_result
from bot.brain.tools.frozen_calls import FrozenCall
from compaction.payload import MessageToolCall

if TYPE_CHECKING:
    from bot.brain.tools.permission import Asker
    from bot.brain.tools.toolbox import Toolbox
    from compaction.model import Seq
    from voice.realtime.port import RealtimeToolCall

# The model speaks by itself, so it is asked to say what the text pipeline says in a fixed sentence.
SAY_SO = " Say so now, in one short sentence."


class ReplyTools:
    """The tools of the current reply; of nobody before the first question."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._tools = toolbox.for_asker()
        # The turn of the last question.
        self._answering: Seq | None = None

    def begin(self, asker: Asker, answering: Seq) -> None:
        """Run calls for the reply to this turn from now on."""
        self._tools, self._answering = self._toolbox.for_asker(asker, answering=answering), answering

    async def run(self, call: RealtimeToolCall) -> str:
        """Run one tool call, and record it."""
        tools, turn = self._tools, self._answering
        requested = MessageToolCall(call.call_id, call.name, call.arguments)
        steps: list[ToolExchange] = []
        try:
            (result,) = await tools.run_all((requested,))
            steps.append(ToolExchange((requested,), (result,)))
        finally:
            if turn is not None:
                tools.record(turn, steps)
        return read_result(result) + (SAY_SO if isinstance(result, FrozenCall) else "")
