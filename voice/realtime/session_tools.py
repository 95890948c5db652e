"""The tools of a speech-to-speech session: those offered to its model, what calls of them leave behind, and how one is
run. Whatever fails is told to the model, and not to the room.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import structlog

from voice.realtime.wire import tool_number_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from voice.realtime.port import RealtimeTool, RealtimeToolCall, ToolRunner

log = structlog.get_logger()

# Items of calls and of their results that are not deleted yet: more than one reply has.
_MOST_ITEMS = 64


class SessionTools:
    """The tools of one session, over any number of connections. A server that refuses one refuses all that was sent
    with it. `offered`: those that were offered last. `items`: those of calls and of their results on this connection.
    """

    def __init__(self) -> None:
        self.offered: tuple[RealtimeTool, ...] = ()
        self.items: dict[str, None] = {}
        # The event that offered them.
        self._event_id = ""
        # By name. A tool that is described anew is not offered again either: each try may cost a connection.
        self._refused: set[str] = set()

    def offer(self, tools: Iterable[RealtimeTool], event_id: str) -> tuple[RealtimeTool, ...]:
        """Return the tools that the server has not refused. This event offers them."""
        self.offered = tuple(tool for tool in tools if tool.name not in self._refused)
        self._event_id = event_id
        return self.offered

    def refuse(self, error: Mapping[str, Any]) -> str:
        """Return the name of the tool that an error of the server is about, and leave it out from now on; empty if it
        is about none of those that were offered last.
        """
        number = tool_number_of(error)
        if number is None or number >= len(self.offered) or error.get("event_id") != self._event_id:
            return ""
        name = self.offered[number].name
        self._refused.add(name)
        return name

    def note_item(self, item_id: str) -> None:
        """Note an item of a call or of its result."""
        self.items[item_id] = None
        while len(self.items) > _MOST_ITEMS:
            del self.items[next(iter(self.items))]


# Shorter than the reply's timeout, so that the model can still say that it could not find out.
TOOL_TIMEOUT_S: Final = 5.0


async def tool_output(call: RealtimeToolCall, run_tool: ToolRunner) -> str:
    """Return what the model gets for its call: what the tool returned, or a sentence about why there is nothing."""
    try:
        async with asyncio.timeout(TOOL_TIMEOUT_S):
            return await run_tool(call)
    except TimeoutError:
        return "The tool takes too long. Do not call it again for this question."
    except Exception as error:  # noqa: BLE001 - a tool's failure is told to the model, not to the room
        # Without the name, which comes from the model and may quote people.
        log.warning("realtime_tool_failed", error_class=type(error).__name__)
        return "The tool failed."
