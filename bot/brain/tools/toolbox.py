"""The tools of one room: offers them for a question, then checks, runs and bounds the calls.

Every tool call of a model passes through here. A call never raises: each failure becomes a sentence for the model.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import structlog

from bot.brain.tools.exchanges import ToolExchange, ToolExchanges
from bot.brain.tools.frozen_calls import LAPSE_S, FrozenCall, FrozenCalls
from bot.brain.tools.permission import NOBODY, Asker
from bot.brain.tools.running import FAILURES, ToolOutcome, error_text, run_tool
from bot.brain.tools.schema import read_arguments
from bot.brain.tools.tool import ToolError
from bot.channel.port import ChatError
from bot.llm.port import ToolOffer
from bot.texts.catalogue import ENGLISH
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.brain.tools.exchanges import ToolResult
    from bot.brain.tools.frozen_calls import ShowCall
    from bot.brain.tools.tool import RoomTool
    from bot.channel.port import CallMessage
    from compaction.model import Seq
    from compaction.payload import MessageToolCall

log = structlog.get_logger()

# What was said before may not be used any more, and the model's arguments may repeat it.
OUTDATED = "It was stopped: what was found may not be used any more. Say that it has to be asked for again."


async def _no_chat(*_: object) -> CallMessage:
    raise ChatError(Text("There is no chat here in which I could ask for a press."))


class Toolbox:
    """The tools of a room. `more`: returns tools that can change, such as those of MCP servers. `personal`: returns the
    tools that act with the permissions of the person who asks.

    `ask_for_press`: posts a call that waits. `is_present`: returns whether a person is in the channel now. `language`:
    returns that of the channel, as a Discord locale.
    """

    def __init__(
        self,
        tools: Sequence[RoomTool] = (),
        *,
        more: Callable[[], Sequence[RoomTool]] = tuple,
        personal: Callable[[Asker], Sequence[RoomTool]] = lambda _: (),
        ask_for_press: ShowCall = _no_chat,
        is_present: Callable[[int], bool] = lambda _: False,
        language: Callable[[], str] = lambda: ENGLISH,
        lapse_s: float = LAPSE_S,
    ) -> None:
        self._own = tuple(tools)
        self._more = more
        self._personal = [personal]
        self._is_present = is_present
        self.language = language
        # The calls and results of the last questions.
        self.exchanges = ToolExchanges()
        # The calls that wait for a press.
        self.frozen = FrozenCalls(ask_for_press, self._find_for_press, lapse_s=lapse_s)
        # The turn of the question that is answered now; None: unknown.
        self.question: Seq | None = None
        # Gets the turn of each question for which a tool has failed.
        self.on_failure: Callable[[Seq], None] = lambda _: None

    def add(self, personal: Callable[[Asker], Sequence[RoomTool]]) -> None:
        """Add tools that act for the person who asks."""
        self._personal.append(personal)

    def tools(self, asker: Asker = NOBODY) -> tuple[RoomTool, ...]:
        """Return all tools that can be called now, made for `asker` but without asking whether they may.

        The first of two with the same name wins.
        """
        named: dict[str, RoomTool] = {}
        personal = [tool for make in self._personal for tool in make(asker)]
        for tool in (*self._own, *personal, *self._more()):
            if tool.available():
                named.setdefault(tool.name, tool)
        return tuple(named.values())

    def find(self, name: str, asker: Asker) -> RoomTool | None:
        return next((each for each in self.tools(asker) if each.name == name), None)

    def _find_for_press(self, name: str, user_id: int, roles: frozenset[int]) -> RoomTool | None:
        """Return a tool as it is now, if whoever presses may have it run now."""
        asker = Asker(user_id, present=self._is_present(user_id), roles=roles)
        tool = self.find(name, asker)
        return None if tool is None or tool.refusal(asker) is not None else tool

    def offers_for(self, asker: Asker) -> tuple[ToolOffer, ...]:
        """Return the offers of all tools that may run for `asker` now."""
        return tuple(
            ToolOffer(tool.name, tool.description, tool.parameters)
            for tool in self.tools(asker)
            if tool.refusal(asker) is None
        )

    def for_asker(self, asker: Asker = NOBODY, *, answering: Seq | None = None) -> QuestionTools:
        """Return what runs the calls for one question. `answering`: its turn."""
        self.question = answering
        return QuestionTools(self, asker, answering)

    def drop_derived(self) -> None:
        """Forget the results, and end the calls that wait or run: words that may not be used any more may be in all of
        them. What was asked before brings no more results.
        """
        self.exchanges.clear()
        self.frozen.withdraw()


class QuestionTools:
    """Runs the tool calls for one question, on behalf of the person who asked it."""

    def __init__(self, toolbox: Toolbox, asker: Asker, answering: Seq | None = None) -> None:
        self._toolbox = toolbox
        self._asker = asker
        self._answering = answering
        # What is cleared from then on may be in a result of this question.
        self._clearings = toolbox.exchanges.clearings
        self._frozen: list[tuple[MessageToolCall, FrozenCall]] = []
        self._released = asyncio.Event()
        self._released.set()
        # Fixed when the question is asked. Each call checks the permission again.
        self.offers = toolbox.offers_for(asker)

    @property
    def language(self) -> str:
        """Return the language of the channel, as a Discord locale."""
        return self._toolbox.language()

    def hold_calls(self) -> None:
        """Make calls wait until `release_calls`. For a preemptive reply, whose question may be incomplete."""
        self._released.clear()

    def release_calls(self) -> None:
        """Let calls run, also those that have waited since `hold_calls`."""
        self._released.set()

    def record(self, turn: Seq, steps: Sequence[ToolExchange]) -> None:
        """Record steps of the reply, for later questions and for the model that answers if this one fails; and calls
        that wait for a press although their step was cut off. Call it also when the reply is cancelled.
        """
        frozen, self._frozen = self._frozen, []
        if not self._is_current():
            return
        recorded = [result for step in steps for result in step.results]
        cut_off = [ToolExchange((call,), (waiting,)) for call, waiting in frozen if waiting not in recorded]
        self._toolbox.exchanges.record(turn, [*steps, *cut_off])

    async def run_all(self, calls: Sequence[MessageToolCall]) -> tuple[ToolResult, ...]:
        """Run the calls that a model made at once; return their results for the model. A call that has to wait for a
        press is returned as a `FrozenCall` once it is posted. Never raises.
        """
        await self._released.wait()
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._run_logged(call), name=f"tool-{call.name[:40]}") for call in calls]
        results = tuple(task.result() for task in running)
        if self._is_current():
            return results
        return tuple(result if isinstance(result, FrozenCall) else OUTDATED for result in results)

    def _is_current(self) -> bool:
        """Return whether nothing was cleared since the question was asked."""
        return self._toolbox.exchanges.clearings == self._clearings

    async def _run_logged(self, call: MessageToolCall) -> ToolResult:
        started = time.monotonic()
        tool = self._toolbox.find(call.name, self._asker)
        output: ToolResult
        if tool is None:
            outcome, output = ToolOutcome.UNKNOWN, f"There is no tool {call.name[:60]!r}."
        else:
            outcome, output = await self._run(tool, call)
        if outcome in FAILURES and self._answering is not None:
            self._toolbox.on_failure(self._answering)
        log.info(
            "tool_called",
            # An unknown name comes from the model, which may quote people, so it is not logged.
            tool=None if tool is None else tool.name,
            outcome=outcome.value,
            duration_ms=round(1000 * (time.monotonic() - started), 1),
            argument_chars=len(call.arguments),
            output_chars=len(output) if isinstance(output, str) else 0,
        )
        return output

    async def _run(self, tool: RoomTool, call: MessageToolCall) -> tuple[ToolOutcome, ToolResult]:
        if (refused := tool.refusal(self._asker)) is not None:
            return ToolOutcome.REFUSED, refused
        try:
            arguments = read_arguments(call.arguments, tool.parameters)
            if not tool.asks:
                return await run_tool(tool, arguments)
            if not self._is_current():
                return ToolOutcome.REFUSED, OUTDATED
            frozen = self._toolbox.frozen.freeze(tool, arguments, self._asker)
        except ToolError as error:
            return ToolOutcome.FAILED, error_text(tool, error)
        self._frozen.append((call, frozen))
        await frozen.posted.wait()
        if frozen.problem is None:
            return ToolOutcome.ASKED, frozen
        self._frozen.remove((call, frozen))
        return ToolOutcome.FAILED, frozen.problem
