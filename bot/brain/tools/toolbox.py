"""The tools of one room: which of them are offered for a question, and what comes of a call.

It checks, runs and bounds; nothing a model writes gets past it. A call never raises: whatever goes wrong is a sentence
that the model reads.
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
from bot.brain.tools.untrusted_text import mark_as_data
from bot.llm.port import ToolOffer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.brain.tools.exchanges import ToolExchange
    from bot.brain.tools.permission import Asker
    from bot.brain.tools.tool import RoomTool
    from compaction.budget.messages import MessageToolCall
    from compaction.model import Seq

log = structlog.get_logger()

# Calls of tools with side effects that one question can lead to.
MOST_SIDE_EFFECTS = 2


class Toolbox:
    """The tools of a room. `more` are those that come and go, such as those of MCP servers."""

    def __init__(self, tools: Sequence[RoomTool] = (), *, more: Callable[[], Sequence[RoomTool]] = tuple) -> None:
        self._own = tuple(tools)
        self._more = more
        # What came of the calls of the last questions.
        self.exchanges = ToolExchanges()

    def tools(self) -> tuple[RoomTool, ...]:
        """Return every tool that can be called at present, by somebody; of two with one name the first."""
        named: dict[str, RoomTool] = {}
        for tool in (*self._own, *self._more()):
            if tool.available():
                named.setdefault(tool.name, tool)
        return tuple(named.values())

    def offered(self, asker: Asker) -> tuple[ToolOffer, ...]:
        """Return what a model is told of the tools that may run for `asker` now."""
        return tuple(
            ToolOffer(tool.name, tool.description, tool.parameters)
            for tool in self.tools()
            if refusal(tool, asker) is None
        )

    def use(self, asker: Asker = NOBODY) -> ToolRunner:
        """Return what runs the calls that one question leads to."""
        return ToolRunner(self, asker)


class ToolRunner:
    """The calls of one question, on behalf of who asked it."""

    def __init__(self, toolbox: Toolbox, asker: Asker) -> None:
        self._toolbox = toolbox
        self._asker = asker
        self._side_effects = 0
        self._released = asyncio.Event()
        self._released.set()
        # What may be called; what is not offered may become so meanwhile, and is refused all the same if it may not.
        self.offers = toolbox.offered(asker)

    def hold(self) -> None:
        """Let calls wait until they are released: nobody has asked yet."""
        self._released.clear()

    def release(self) -> None:
        """Let what waits run."""
        self._released.set()

    def keep(self, turn: Seq, steps: Sequence[ToolExchange]) -> None:
        """Keep what came of the question for those that follow it."""
        self._toolbox.exchanges.keep(turn, steps)

    async def run(self, call: MessageToolCall) -> str:
        """Carry a call out and return what the model reads: marked as data, and bounded. Never raises."""
        await self._released.wait()
        begun = time.monotonic()
        tool = next((each for each in self._toolbox.tools() if each.name == call.name), None)
        if tool is None:
            outcome, output = "unknown", f"There is no tool {call.name[:60]!r}."
        else:
            outcome, output = await self._run(tool, call)
        log.info(
            "tool_called",
            # The name of one that there isn't is words of the model's.
            tool=None if tool is None else tool.name,
            outcome=outcome,
            duration_ms=round(1000 * (time.monotonic() - begun), 1),
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
            # Its words may be somebody else's.
            return "failed", mark_as_data(tool.name, str(error), max_chars=tool.max_chars)
        except Exception as error:
            # Whatever breaks in one tool costs one tool's answer; what it says may hold what people said.
            log.warning("tool_broke", tool=tool.name, error_class=type(error).__name__, exc_info=error)
            return "broken", f"{tool.name} broke. Go on without it."
        return "answered", mark_as_data(tool.name, found, max_chars=tool.max_chars)
