"""The tools of one room: offers them for a question, then checks, runs and bounds the calls.

Every tool call of a model passes through here. A call never raises: each failure becomes a sentence for the model.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import structlog

from bot.brain.tools.exchanges import ToolExchanges
from bot.brain.tools.permission import NOBODY, refusal
from bot.brain.tools.schema import read_arguments
from bot.brain.tools.tool import ToolError
from bot.llm.port import ToolOffer
from compaction.untrusted_text import mark_as_data

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.brain.tools.exchanges import ToolExchange
    from bot.brain.tools.permission import Asker
    from bot.brain.tools.tool import RoomTool
    from compaction.budget.messages import MessageToolCall
    from compaction.model import Seq

log = structlog.get_logger()

# Calls of tools with side effects for one question.
MOST_SIDE_EFFECTS = 2


class Toolbox:
    """The tools of a room. `more`: returns tools that can change, such as those of MCP servers. `personal`: returns the
    tools that act with the permissions of the person who asks.
    """

    def __init__(
        self,
        tools: Sequence[RoomTool] = (),
        *,
        more: Callable[[], Sequence[RoomTool]] = tuple,
        personal: Callable[[Asker], Sequence[RoomTool]] = lambda _: (),
    ) -> None:
        self._own = tuple(tools)
        self._more = more
        self._personal = personal
        # The calls and results of the last questions.
        self.exchanges = ToolExchanges()

    def tools(self, asker: Asker = NOBODY) -> tuple[RoomTool, ...]:
        """Return all tools that can be called now, made for `asker` but without asking whether they may.

        The first of two with the same name wins.
        """
        named: dict[str, RoomTool] = {}
        for tool in (*self._own, *self._personal(asker), *self._more()):
            if tool.available():
                named.setdefault(tool.name, tool)
        return tuple(named.values())

    def offers_for(self, asker: Asker) -> tuple[ToolOffer, ...]:
        """Return the offers of all tools that may run for `asker` now."""
        return tuple(
            ToolOffer(tool.name, tool.description, tool.parameters)
            for tool in self.tools(asker)
            if refusal(tool, asker) is None
        )

    def for_asker(self, asker: Asker = NOBODY) -> QuestionTools:
        return QuestionTools(self, asker)


class QuestionTools:
    """Runs the tool calls for one question, on behalf of the person who asked it."""

    def __init__(self, toolbox: Toolbox, asker: Asker) -> None:
        self._toolbox = toolbox
        self._asker = asker
        self._side_effects = 0
        self._released = asyncio.Event()
        self._released.set()
        # Fixed when the question is asked. Each call checks the permission again.
        self.offers = toolbox.offers_for(asker)

    def hold_calls(self) -> None:
        """Make calls wait until `release_calls`. For a preemptive reply, whose question may be incomplete."""
        self._released.clear()

    def release_calls(self) -> None:
        self._released.set()

    def record(self, turn: Seq, steps: Sequence[ToolExchange]) -> None:
        """Record the reply's steps for later questions."""
        self._toolbox.exchanges.record(turn, steps)

    async def run(self, call: MessageToolCall) -> str:
        """Run one tool call and return its result for the model, bounded and marked as data. Never raises."""
        await self._released.wait()
        started = time.monotonic()
        tool = next((each for each in self._toolbox.tools(self._asker) if each.name == call.name), None)
        if tool is None:
            outcome, output = "unknown", f"There is no tool {call.name[:60]!r}."
        else:
            outcome, output = await self._run(tool, call)
        log.info(
            "tool_called",
            # An unknown name comes from the model, which may quote people, so it is not logged.
            tool=None if tool is None else tool.name,
            outcome=outcome,
            duration_ms=round(1000 * (time.monotonic() - started), 1),
            argument_chars=len(call.arguments),
            output_chars=len(output),
        )
        return output

    async def _run(self, tool: RoomTool, call: MessageToolCall) -> tuple[str, str]:
        refused = refusal(tool, self._asker)
        if refused is not None:
            return "refused", refused
        if tool.side_effects and self._side_effects >= MOST_SIDE_EFFECTS:
            return "refused", f"Enough: {tool.name} is not called again for this question."
        try:
            arguments = read_arguments(call.arguments, tool.parameters)
            self._side_effects += tool.side_effects
            async with asyncio.timeout(tool.timeout_s):
                found = await tool.call(arguments)
        except TimeoutError:
            return "timeout", f"{tool.name} took longer than {tool.timeout_s:g} s and was given up."
        except ToolError as error:
            # The message may come from outside, for example from an MCP server.
            return "failed", mark_as_data(tool.name, str(error), max_chars=tool.max_chars)
        except Exception as error:
            # A broken tool costs one result. The message of the exception is not logged: it may quote people.
            log.warning("tool_crashed", tool=tool.name, error_class=type(error).__name__, exc_info=error)
            return "broken", f"{tool.name} broke. Go on without it."
        return "answered", mark_as_data(tool.name, found, max_chars=tool.max_chars)
