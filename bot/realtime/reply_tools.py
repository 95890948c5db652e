"""Runs the tool calls of a speech-to-speech reply, with the permissions of the person who asked.

They are recorded for the language model: if the session fails, that answers and must not do the same again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.tools.exchanges import ToolExchange
from compaction.payload import MessageToolCall
from compaction.untrusted_text import without_marks

if TYPE_CHECKING:
    from bot.brain.tools.permission import Asker
    from bot.brain.tools.toolbox import Toolbox
    from compaction.model import Seq
    from voice.realtime.port import RealtimeToolCall


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

    async def carry_out_agreed(self) -> str:
        """Do what the asker has just said yes to; return its result, or '' if that is nothing."""
        tools, turn = self._tools, self._answering
        done = None
        try:
            done = await tools.carry_out_agreed()
        finally:
            if turn is not None:
                tools.record(turn, [] if done is None else [done])
        if done is None:
            return ""
        return without_marks(done.results[0]) or "It answered nothing."

    async def run(self, call: RealtimeToolCall) -> str:
        """Run one tool call. It is recorded, unless it waits for a yes: then it is when it has been done."""
        tools, turn = self._tools, self._answering
        requested = MessageToolCall(call.call_id, call.name, call.arguments)
        steps: list[ToolExchange] = []
        try:
            result = await tools.run(requested)
            asked_first = tools.proposal is not None and tools.proposal.call is requested
            if not asked_first:
                steps.append(ToolExchange((requested,), (result,)))
        finally:
            if turn is not None:
                tools.record(turn, steps)
        return result
