"""The tools of one room: offers them for a question, then checks, runs and bounds the calls.

Every tool call of a model passes through here. A call never raises: each failure becomes a sentence for the model.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.brain.tools.exchanges import ToolExchange, ToolExchanges
from bot.brain.tools.order_words import is_german
from bot.brain.tools.orders import Demand
from bot.brain.tools.permission import NOBODY, demand_of, lacks_right, refusal
from bot.brain.tools.proposals import Proposals, ProposedCall, question_about
from bot.brain.tools.running_effects import RunningEffects
from bot.brain.tools.schema import read_arguments
from bot.brain.tools.tool import ToolError
from bot.llm.port import ToolOffer
from compaction.untrusted_text import mark_as_data
from voice.cancellation import is_being_cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bot.brain.tools.permission import Asker
    from bot.brain.tools.tool import RoomTool
    from compaction.model import Seq
    from compaction.payload import MessageToolCall

log = structlog.get_logger()

# What the model reads for a call whose reply was cancelled while it ran, until its result is there.
STILL_RUNNING = "It is being done: it was ordered, and goes on although your reply was cut off."
# What the model reads instead of a result when a call needs the asker's yes. A speech-to-speech model says it itself.
ASK_FIRST = "Nothing is done yet: it needs a yes. Ask aloud now, in exactly these words and no others: {question}"
# What was said before may not be used any more, and the model's arguments may repeat it.
OUTDATED = "It was stopped: somebody's words were withdrawn since the question. Say that it has to be asked for again."
ONE_AT_A_TIME = "Nothing is done: ask about one thing at a time. Offer {tool} again after the answer to your question."


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
        # The call that waits for the asker's yes.
        self.proposals = Proposals()
        # The calls with side effects that run, also without their reply.
        self.effects = RunningEffects()
        # How often words were withdrawn, which ends what was asked before.
        self.withdrawals = 0
        # The turn of the last question for which a tool ran. Its results may be forgotten.
        self.used_for: Seq | None = None
        # The turn of the question that is answered now; None: unknown.
        self.question: Seq | None = None
        # The turn of the last question for which a call with side effects was begun.
        self.acted_for: Seq | None = None

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
        tools = self.tools(asker)
        return tuple(
            ToolOffer(tool.name, tool.description, tool.parameters)
            for tool in tools
            if refusal(tool, asker, tools) is None
        )

    def for_asker(self, asker: Asker = NOBODY, *, answering: Seq | None = None) -> QuestionTools:
        """Return what runs the calls for one question. `answering`: its turn, of which another model may have answered
        a part; None: no model has.
        """
        self.question = answering
        return QuestionTools(
            self, asker, answering=answering, has_read=answering is not None and answering == self.used_for
        )

    def has_acted(self, turn: Seq, asker_id: int | None) -> bool:
        """Return whether a call with side effects was begun for the question in `turn`, or still runs for its asker."""
        return turn == self.acted_for or self.effects.runs_for(asker_id)

    def drop_derived(self) -> None:
        """Forget the results and the call that waits for a yes, and cancel the effects that run: words that may not be
        used any more may be in all of them. What was asked before has no more effects and brings no more results.
        """
        self.withdrawals += 1
        self.exchanges.clear()
        self.proposals.withdraw()
        self.effects.cancel()


class QuestionTools:
    """Runs the tool calls for one question, on behalf of the person who asked it.

    An order runs one call of its tool, as long as nothing was read for this question: after that, and for a second
    call, and where it is not certain that the words were an order, the call becomes the `proposal`, which the bot has
    to ask about aloud.
    """

    def __init__(self, toolbox: Toolbox, asker: Asker, *, answering: Seq | None = None, has_read: bool = False) -> None:
        self._toolbox = toolbox
        self._asker = asker
        self._answering = answering
        self._called: set[str] = set()
        self._has_read = has_read
        # What is cleared from then on may be in a result of this question.
        self._clearings = toolbox.exchanges.clearings
        self._withdrawals = toolbox.withdrawals
        # Calls with side effects that run although the reply was cancelled, until they are recorded.
        self._cut_off: list[tuple[MessageToolCall, asyncio.Task[str]]] = []
        self.proposal: ProposedCall | None = None
        self._released = asyncio.Event()
        self._released.set()
        # Fixed when the question is asked. Each call checks the permission again.
        self.offers = toolbox.offers_for(asker)

    def hold_calls(self) -> None:
        """Make calls wait until `release_calls`. For a preemptive reply, whose question may be incomplete."""
        self._released.clear()

    def release_calls(self) -> None:
        """Let calls run, also those that have waited since `hold_calls`."""
        self._released.set()

    def record(self, turn: Seq, steps: Sequence[ToolExchange]) -> None:
        """Record steps of the reply, for later questions and for the model that answers if this one fails; and calls
        that go on without the reply, each with its result once that is there. Call it also when the reply is cancelled.
        """
        exchanges, cut_off = self._toolbox.exchanges, self._cut_off
        self._cut_off = []
        if steps or cut_off:
            self._toolbox.used_for = turn
        if not self._is_current():
            return
        exchanges.record(turn, steps)
        for call, task in cut_off:
            running = ToolExchange((call,), (STILL_RUNNING,))
            exchanges.record(turn, [running])
            task.add_done_callback(partial(_record_result, exchanges, turn, running))

    async def carry_out_agreed(self) -> ToolExchange | None:
        """Do what the asker was asked about, if their words are a yes to it. Return the call and its result."""
        agreed = await self.agreed_call()
        return None if agreed is None else await self.carry_out(agreed)

    async def agreed_call(self) -> ProposedCall | None:
        """Return the call that the asker was asked about, if their words are a yes to it."""
        proposals = self._toolbox.proposals
        if not proposals.waits_for(self._asker):
            return None
        await self._released.wait()
        return proposals.settle(self._asker)

    async def carry_out(self, agreed: ProposedCall) -> ToolExchange:
        """Make a call that the asker has agreed to. Return it and its result. When it is cancelled, the call goes on
        (`record`).
        """
        results = await self._run_each((agreed.call,), agreed=True)
        return ToolExchange((agreed.call,), results)

    async def run_all(self, calls: Sequence[MessageToolCall]) -> tuple[str, ...]:
        """Run the calls that a model made at once; return their results for the model. Never raises.

        When it is cancelled, calls with side effects go on (`record`).
        """
        await self._released.wait()
        return await self._run_each(calls)

    async def run(self, call: MessageToolCall) -> str:
        """Run one tool call and return its result for the model, bounded and marked as data. Never raises."""
        (result,) = await self.run_all((call,))
        return result

    async def _run_each(self, calls: Sequence[MessageToolCall], *, agreed: bool = False) -> tuple[str, ...]:
        """Run the calls at once, and return their results."""
        running = [
            (call, asyncio.create_task(self._run_logged(call, agreed=agreed), name=f"tool-{call.name[:40]}"))
            for call in calls
        ]
        for call, task in running:
            if self._has_effects(call):
                self._toolbox.effects.keep(task, self._asker.user_id)
        try:
            await asyncio.wait([task for _, task in running])
        except asyncio.CancelledError:
            await self._cut_off_calls(running)
            raise
        # From here on the model may be obeying what it read.
        self._has_read = True
        if self._is_withdrawn():
            return (OUTDATED,) * len(running)
        return tuple(task.result() for _, task in running)

    async def _cut_off_calls(self, running: Sequence[tuple[MessageToolCall, asyncio.Task[str]]]) -> None:
        """Let those calls go on that have side effects, and cancel the others; all of them if somebody's words were
        withdrawn.
        """
        going_on = [] if self._is_withdrawn() else [each for each in running if self._has_effects(each[0])]
        self._cut_off += [each for each in going_on if self.proposal is None or each[0] is not self.proposal.call]
        if others := [task for call, task in running if (call, task) not in going_on]:
            for task in others:
                task.cancel()
            await asyncio.wait(others)

    def _tool(self, call: MessageToolCall) -> RoomTool | None:
        return next((each for each in self._toolbox.tools(self._asker) if each.name == call.name), None)

    def _has_effects(self, call: MessageToolCall) -> bool:
        tool = self._tool(call)
        return tool is not None and tool.side_effects

    def _is_current(self) -> bool:
        """Return whether nothing was cleared since the question was asked."""
        return self._toolbox.exchanges.clearings == self._clearings

    def _is_withdrawn(self) -> bool:
        """Return whether somebody's words were withdrawn since the question was asked."""
        return self._toolbox.withdrawals != self._withdrawals

    async def _run_logged(self, call: MessageToolCall, *, agreed: bool) -> str:
        started = time.monotonic()
        tool = self._tool(call)
        if tool is None:
            outcome, output = "unknown", f"There is no tool {call.name[:60]!r}."
        else:
            outcome, output = await self._run(tool, call, agreed=agreed)
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

    async def _run(self, tool: RoomTool, call: MessageToolCall, *, agreed: bool) -> tuple[str, str]:
        tools = self._toolbox.tools(self._asker)
        refused = lacks_right(tool, self._asker) if agreed else refusal(tool, self._asker, tools)
        if tool.side_effects and self._is_withdrawn():
            refused = OUTDATED
        if refused is not None:
            return "refused", refused
        try:
            arguments = read_arguments(call.arguments, tool.parameters)
            if tool.side_effects and not agreed and not self._is_ordered(tool, tools):
                return self._propose(tool, call, arguments)
            self._called.add(tool.name)
            if tool.side_effects:
                self._toolbox.acted_for = self._answering
            async with asyncio.timeout(tool.timeout_s):
                found = await tool.call(arguments)
        except TimeoutError:
            return "timeout", f"{tool.name} took longer than {tool.timeout_s:g} s and was given up."
        except ToolError as error:
            # The message may come from outside, for example from an MCP server.
            return "failed", mark_as_data(tool.name, str(error), max_chars=tool.max_chars)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
                raise
            # A broken tool costs one result. The message of the exception is not logged: it may quote people.
            log.warning("tool_crashed", tool=tool.name, error_class=type(error).__name__, exc_info=error)
            return "broken", f"{tool.name} broke. Go on without it."
        return "answered", mark_as_data(tool.name, found, max_chars=tool.max_chars)

    def _is_ordered(self, tool: RoomTool, tools: Sequence[RoomTool]) -> bool:
        """Return whether this call may run without asking."""
        if self._has_read or tool.name in self._called:
            return False
        return demand_of(tool, self._asker, tools) is Demand.ORDERED

    def _propose(self, tool: RoomTool, call: MessageToolCall, arguments: Mapping[str, object]) -> tuple[str, str]:
        """Have the asker asked about a call. Raises `ToolError`."""
        if self.proposal is not None or self._asker.user_id is None:
            return "refused", ONE_AT_A_TIME.format(tool=tool.name)
        german = is_german(self._asker.words, language=self._asker.language)
        question = question_about(tool, arguments, german=german)
        self.proposal = ProposedCall(tool, call, self._asker.user_id, question, german)
        self._toolbox.proposals.make(self.proposal)
        return "asked", ASK_FIRST.format(question=question)


def _record_result(exchanges: ToolExchanges, turn: Seq, running: ToolExchange, task: asyncio.Task[str]) -> None:
    """Record what a call has brought that went on without its reply."""
    if not task.cancelled():
        exchanges.replace(turn, running, ToolExchange(running.calls, (task.result(),)))
