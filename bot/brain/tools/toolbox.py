"""The tools of one room: offers them for a question, then checks, runs and bounds the calls, and keeps the last ones.

Every tool call of a model passes through here. A call never raises: each failure becomes a sentence for the model.

A result says who may know it. It ends with its reply, unless everybody whom a later answer reaches may know it then,
and was reached when the tool was called: what a tool finds may depend on who is there. What the bot has said from it is
said.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.brain.tools.built_in import stop_tools
from bot.brain.tools.frozen_calls import LAPSE_S, REPLY_WAITS_S, FrozenCall, FrozenCalls
from bot.brain.tools.tool import (
    FAILURES,
    NOBODY,
    Asker,
    Result,
    RoomTool,
    ToolError,
    ToolOutcome,
    anybody,
    only,
    read_arguments,
)
from bot.channel.port import CallMessage, ChatError, Person, RoomChannel
from bot.llm.port import ChatMessage, ChatRole, ToolOffer
from bot.texts.text import Text, sentence_of, verbatim
from bot.words import SESSION, Leased, Words
from compaction.budget.messages import next_step
from compaction.budget.tool_outputs import ToolOutputOptions, active_outputs
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Mapping, Sequence

    from bot.brain.tools.frozen_calls import ShowCall
    from compaction.model import Seq
    from compaction.payload import MessageToolCall, PayloadPart
    from compaction.session import SessionTimeline

    # What a model reads is its text: of a frozen call, what has become of it by then.
    ToolResult = str | FrozenCall

log = structlog.get_logger()

# What was said before may not be used any more, and the model's arguments may repeat it.
OUTDATED = "It was stopped: what was found may not be used any more. Say that it has to be asked for again."
# Questions whose calls are kept. Results of older ones are already cut to placeholders.
MOST_QUESTIONS = 8
# Steps of one question that are kept. Unasked replies to the same turn add theirs each time.
MOST_STEPS = 16


class UntilWanted(Protocol):
    async def __call__(self, *, acts: bool) -> None:
        """Wait until calls may run. `acts`: one of them does more than read."""


async def _wanted_at_once(*, acts: bool) -> None:
    """Wait for nothing."""


async def _no_chat(*_: object) -> CallMessage:
    raise ChatError(Text("Before I do this, I must ask you in a chat. But there is no chat here."))


@dataclass(frozen=True, slots=True)
class Reach:
    """Whom an answer reaches, and the channels that all who are in the voice channel may enter."""

    people: tuple[Asker, ...] = ()
    channels: frozenset[int] = frozenset()

    def of_answer_to(self, asker: Asker) -> Reach:
        """Return whom the answer to a question reaches. Anybody may read a written one."""
        others = tuple(each for each in self.people if each.user_id != asker.user_id)
        asked = () if asker.user_id is None else (asker,)
        return replace(self, people=(*asked, *others, *(() if asker.typed is None else (NOBODY,))))


def listener(person: Person) -> Asker:
    """Return somebody in the voice channel as one who may ask."""
    return Asker(person.id, person.name, present=not person.is_bot, roles=person.roles, reads_chat=person.reads_chat)


def reach_in(channel: RoomChannel) -> Reach:
    """Return whom what is said in a voice channel reaches now, those included whom Discord has not described."""
    people = {each.id: listener(each) for each in channel.members()}
    listening = (int(each.person_id) for each in channel.viewers())
    return Reach(tuple(people.get(each) or Asker(each, present=True) for each in listening), channel.shared_channels())


@dataclass(frozen=True, slots=True)
class Knowers:
    """Who may know what tools returned: who `permits` allows, of those whom the first answer from it reached."""

    permits: tuple[Callable[[Asker], bool], ...] = ()
    reach: Reach = Reach()

    def include(self, reach: Reach) -> bool:
        """Return whether all whom an answer reaches now may know it."""
        reached = {each.user_id for each in self.reach.people}
        return self.reach.channels <= reach.channels and all(
            each.user_id in reached and self.permit(each) for each in reach.people
        )

    def hear_now(self, reach: Reach) -> bool:
        """Return whether all who listen now may hear it. Who was there when it was asked for was meant to."""
        reached = {each.user_id for each in self.reach.people}
        return all(each.user_id in reached or self.permit(each) for each in reach.people)

    def permit(self, asker: Asker) -> bool:
        """Return whether somebody may know all of it now."""
        return all(permits(asker) for permits in self.permits)

    def and_of(self, others: Knowers) -> Knowers:
        """Return who may know what was made of this and of something else."""
        among = {each.user_id for each in others.reach.people}
        people = tuple(each for each in self.reach.people if each.user_id in among)
        channels = self.reach.channels | others.reach.channels
        return Knowers((*self.permits, *others.permits), Reach(people, channels))


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """One step of a reply: the model's calls and their results, in order. `text`: what the model said before them.

    `knowers`: who may know the results; arguments and later steps may repeat them.
    """

    calls: tuple[MessageToolCall, ...]
    results: tuple[ToolResult, ...]
    text: str = ""
    knowers: Knowers = Knowers()

    def known_by(self) -> Knowers:
        """Return who may know what it tells now. A call that ran behind the talk has said so at its end."""
        later = (result.knows for result in self.results if isinstance(result, FrozenCall))
        return replace(self.knowers, permits=(*self.knowers.permits, *later))

    def messages(self) -> list[ChatMessage]:
        """Return the step as chat messages: the calls, then a result for each."""
        results = [
            ChatMessage(ChatRole.TOOL, str(result), tool_call_id=call.id, name=call.name)
            for call, result in zip(self.calls, self.results, strict=True)
        ]
        return [ChatMessage(ChatRole.ASSISTANT, self.text, tool_calls=self.calls), *results]


class ToolExchanges:
    """The tool steps of a room's last replies, by the turn of the question. They stay in the prompt, right after it,
    while all whom the answer reaches may know them (`QuestionTools.earlier`). Those that hold a file stay longer than
    the question, before all other turns.

    A model can answer 'And what does it say further down?' only if it still has the file. The token budget
    (`compaction.budget.tool_outputs`) shortens results with age; this only drops the oldest questions. One whose file
    people still speak of is dropped last.
    """

    def __init__(self) -> None:
        self._by_turn: dict[int, tuple[ToolExchange, ...]] = {}
        self._active: frozenset[int] = frozenset()

    def record(self, turn: Seq, steps: Sequence[ToolExchange]) -> None:
        """Record steps of the reply to one question, after those that another model took for it. Drop the oldest steps
        and questions if there are too many.
        """
        if steps:
            self._by_turn[turn] = (*self._by_turn.get(turn, ()), *steps)[-MOST_STEPS:]
        if len(self._by_turn) > MOST_QUESTIONS:
            older = list(self._by_turn)[:-1]
            kept = self._active | {turn for turn in older if any(map(_runs, self._by_turn[turn]))}
            del self._by_turn[next((turn for turn in older if turn not in kept), older[0])]

    def note_active(self, sent: Sequence[PayloadPart], options: ToolOutputOptions) -> None:
        """Remember which questions' results hold a file that is active in the prompt `sent`."""
        active = {sent[at].tool_call_id for at in active_outputs(sent, next_step(sent), options)}
        self._active = frozenset(
            turn
            for turn, steps in self._by_turn.items()
            if any(call.id in active for step in steps for call in step.calls)
        )

    def steps(self, turns: Container[int], *, before: int = 0) -> dict[int, tuple[ToolExchange, ...]]:
        """Return the steps of the recorded questions among `turns`, and of those that were asked `before` a turn, by
        turn, the newest question first.
        """
        return {turn: steps for turn, steps in reversed(self._by_turn.items()) if turn in turns or turn < before}

    def turn_of(self, call: FrozenCall) -> int | None:
        """Return the turn of the question for which a call was made; None: it is not kept."""
        found = (turn for turn, steps in self._by_turn.items() if any(call in step.results for step in steps))
        return next(found, None)


def _runs(step: ToolExchange) -> bool:
    return any(isinstance(result, FrozenCall) and result.runs for result in step.results)


@dataclass(frozen=True, slots=True)
class TalkTools:
    """What a conversation has its toolbox know. `words`: those of the session. `timeline`: the session itself.
    `personal`: return more tools for the person who asks. `on_done`: awaited after each call that ended after its
    reply, to tell its result. `failed_turns`: gets the turns of the questions for which a tool has failed.
    """

    words: Words = field(default_factory=Words)
    timeline: SessionTimeline | None = None
    personal: tuple[Callable[[Asker], Sequence[RoomTool]], ...] = ()
    on_done: Callable[[FrozenCall], Awaitable[None]] | None = None
    failed_turns: set[int] = field(default_factory=set)


class Toolbox:
    """The tools of a room. `personal`: returns tools that can change, such as those of MCP servers and those that act
    with the permissions of the person who asks. `talk`: what its conversation adds.

    `ask_for_press`: posts a call that waits. `reach`: returns whom what is said in the channel reaches now.
    """

    def __init__(
        self,
        tools: Sequence[RoomTool] = (),
        talk: TalkTools | None = None,
        *,
        personal: Callable[[Asker], Sequence[RoomTool]] = lambda _: (),
        ask_for_press: ShowCall = _no_chat,
        reach: Callable[[], Reach] = Reach,
        lapse_s: float = LAPSE_S,
        reply_waits_s: float = REPLY_WAITS_S,
    ) -> None:
        self._own = tuple(tools)
        self.reach = reach
        talk = talk or TalkTools()
        self.words, self.failed_turns = talk.words, talk.failed_turns
        self._exchanges: Leased[ToolExchanges] | None = None
        # The calls that wait for a press, or run behind the talk.
        self.frozen = FrozenCalls(
            ask_for_press, self._find_for_press, talk.on_done, lapse_s=lapse_s, reply_waits_s=reply_waits_s
        )
        self._personal: tuple[Callable[[Asker], Sequence[RoomTool]], ...] = (
            personal,
            partial(stop_tools, calls=self.frozen),
            *talk.personal,
        )
        # Which tools that may be called once were called, and for which turn, or for which question without one.
        self.called_once: deque[tuple[str, object]] = deque(maxlen=MOST_QUESTIONS)
        # The turn of the question that is answered now; None: unknown.
        self.question: Seq | None = None

    @property
    def exchanges(self) -> ToolExchanges:
        """The calls and results of the last questions. Any of them may repeat what was taken back."""
        kept = None if self._exchanges is None else self._exchanges.take()
        if kept is None:
            kept = ToolExchanges()
            self._exchanges = Leased(kept, self.words.lease({SESSION}, since=None))
        return kept

    def tools(self, asker: Asker = NOBODY) -> tuple[RoomTool, ...]:
        """Return all tools that can be called now, made for `asker` but without asking whether they may.

        The first of two with the same name wins, and those of servers are last: none may take the name or the room of
        another.
        """
        named: dict[str, RoomTool] = {}
        personal = [tool for make in self._personal for tool in make(asker)]
        for tool in sorted((*self._own, *personal), key=lambda each: bool(each.server)):
            named.setdefault(tool.name, tool)
        return tuple(named.values())

    def offered(self, asker: Asker) -> tuple[RoomTool, ...]:
        """Return the tools of which models are told, on behalf of `asker`."""
        return tuple(tool for tool in self.tools(asker) if tool.offered and tool.refusal(asker) is None)

    def find(self, name: str, asker: Asker) -> RoomTool | None:
        return next((each for each in self.tools(asker) if each.name == name), None)

    def _find_for_press(self, name: str, user_id: int, roles: frozenset[int]) -> RoomTool | None:
        """Return a tool as it is now, if whoever presses may have it run now."""
        is_present = any(each.user_id == user_id for each in self.reach().people)
        asker = Asker(user_id, present=is_present, roles=roles)
        tool = self.find(name, asker)
        return None if tool is None or tool.refusal(asker) is not None else tool

    def for_asker(
        self, asker: Asker = NOBODY, *, answering: Seq | None = None, result_of: FrozenCall | None = None
    ) -> QuestionTools:
        """Return what runs the calls for one question. `answering`: its turn. `result_of`: the call that is told."""
        self.question = answering
        return QuestionTools(self, asker, answering, result_of)


class QuestionTools:
    """Runs the tool calls for one question, on behalf of the person who asked it."""

    def __init__(
        self, toolbox: Toolbox, asker: Asker, answering: Seq | None = None, result_of: FrozenCall | None = None
    ) -> None:
        self._toolbox = toolbox
        self._asker = asker
        self._answering = answering
        self._result_of = result_of
        # Who may know what the model of this question reads, and so what it makes of it.
        permits = () if result_of is None else (result_of.knows,)
        self._knowers = Knowers(permits, toolbox.reach().of_answer_to(asker))
        if result_of is not None and (told := toolbox.exchanges.turn_of(result_of)) is not None:
            # Who came after the call hears what came of it only if they may know it.
            for step in toolbox.exchanges.steps({told})[told]:
                self._knowers = self._knowers.and_of(step.known_by())
        self.asker_id = "" if asker.user_id is None else str(asker.user_id)
        # Whether the answer is written below a message.
        self.is_written = asker.typed is not None
        # What is taken back from then on may be in its calls and results.
        self._lease = toolbox.words.lease({SESSION}, since=None)
        self._frozen: list[tuple[MessageToolCall, FrozenCall]] = []
        # Calls wait for it: those of a reply that is held, whose question may be incomplete.
        self.until_wanted: UntilWanted = _wanted_at_once
        # Set when the first call runs.
        self.used = False
        # Fixed when the question is asked. Each call checks the permission again.
        self.offers = tuple(ToolOffer(tool.name, tool.description, tool.parameters) for tool in toolbox.offered(asker))

    def limit_to(self, knows: Callable[[Asker], bool]) -> None:
        """Take note that the model reads what those may know of whom `knows` says so."""
        self._knowers = replace(self._knowers, permits=(*self._knowers.permits, knows))

    def may_be_read(self) -> bool:
        """Return whether what the model makes of it may stand in a chat, where nobody knows who reads it."""
        return self._knowers.permit(NOBODY)

    def may_be_heard(self) -> bool:
        """Return whether all who listen now may hear what is made of the results."""
        return self._knowers.hear_now(self._toolbox.reach())

    def record(self, turn: Seq, steps: Sequence[ToolExchange]) -> None:
        """Record steps of the reply, for later questions and for the model that answers if this one fails; and calls
        that wait for a press although their step was cut off. Call it also when the reply is cancelled.
        """
        frozen, self._frozen = self._frozen, []
        if self._lease.valid:
            recorded = [result for step in steps for result in step.results]
            cut_off = [ToolExchange((call,), (waiting,)) for call, waiting in frozen if waiting not in recorded]
            kept = [replace(step, knowers=self._knowers) for step in (*steps, *cut_off)]
            self._toolbox.exchanges.record(turn, kept)

    def earlier(self, turns: Container[int], *, before: int = 0) -> dict[int, list[ChatMessage]]:
        """Return the steps of earlier replies to these turns, and to those `before` a turn, that the model may read
        now, by turn: those that all may know whom the answer reaches. Those of this same question, and of the call
        whose result is told, are for its asker. The latter stand at the turn that is answered: the question may be long
        ago.
        """
        reach = self._toolbox.reach().of_answer_to(self._asker)
        exchanges = self._toolbox.exchanges
        told = None if self._result_of is None else exchanges.turn_of(self._result_of)
        shown: dict[int, list[ChatMessage]] = {}
        for turn, steps in (
            exchanges.steps(turns, before=before) | ({} if told is None else exchanges.steps({told}))
        ).items():
            # What came of a call is told after the last turn, which is another question.
            # Of an unasked remark nobody is the asker.
            is_same = turn == (self._answering if self._result_of is None else told) and self._asker.user_id is not None
            known = [
                step
                for step in steps
                if (knowers := step.known_by()).include(reach) or (is_same and knowers.permit(self._asker))
            ]
            for step in known:
                self._knowers = self._knowers.and_of(step.known_by())
            if known:
                at = self._answering if turn == told and self._answering is not None else turn
                shown.setdefault(at, []).extend(message for step in known for message in step.messages())
        return shown

    async def run_all(self, calls: Sequence[MessageToolCall]) -> tuple[ToolResult, ...]:
        """Run the calls that a model made at once; return their results for the model. A call that has to wait for a
        press is returned as a `FrozenCall` once it is posted. Never raises.
        """
        called = (self._toolbox.find(call.name, self._asker) for call in calls)
        await self.until_wanted(acts=any(tool is not None and tool.acts for tool in called))
        self.used = True
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._run_logged(call), name=f"tool-{call.name[:40]}") for call in calls]
        results = tuple(task.result() for task in running)
        if self._lease.valid:
            return results
        return tuple(result if isinstance(result, FrozenCall) else OUTDATED for result in results)

    async def do(self, name: str, arguments: Mapping[str, object]) -> Text | None:
        """Do what a tool does for who asked, without a model, and return what to tell them; None: it may not run for
        them. The tool asks nobody first, and tells it in a `Text`.
        """
        tool = self._toolbox.find(name, self._asker)
        await self.until_wanted(acts=tool is not None and tool.acts)
        if tool is None or tool.asks or tool.refusal(self._asker) is not None:
            return None
        try:
            return verbatim((await tool.call(arguments)).text)
        except (ToolError, StoreError) as error:
            return sentence_of(error)

    async def _run_logged(self, call: MessageToolCall) -> ToolResult:
        started = time.monotonic()
        tool = self._toolbox.find(call.name, self._asker)
        outcome, output = await self._run(tool, call)
        if output.knows is not anybody:
            self.limit_to(output.knows)
        # Ends after which nobody has what the tool was called for.
        if outcome in FAILURES and self._answering is not None:
            self._toolbox.failed_turns.add(self._answering)
        log.info(
            "tool_called",
            # An unknown name comes from the model, which may quote people, so it is not logged.
            tool=None if tool is None else tool.name,
            outcome=outcome,
            duration_ms=round(1000 * (time.monotonic() - started), 1),
            argument_chars=len(call.arguments),
            output_chars=len(output.text) if isinstance(output, Result) else 0,
        )
        return output.text if isinstance(output, Result) else output

    async def _run(self, tool: RoomTool | None, call: MessageToolCall) -> tuple[ToolOutcome, Result | FrozenCall]:
        if tool is None:
            return "unknown", Result(f"There is no tool {call.name[:60]!r}.", anybody)
        if (refused := tool.refusal(self._asker)) is not None:
            return "refused", Result(refused, anybody)
        try:
            arguments = read_arguments(call.arguments, tool.parameters)
        except ToolError as error:
            return "failed", Result(tool.as_data(str(error)), tool.permits)
        try:
            if not (tool.asks or tool.slow):
                return await self._run_once(tool, arguments) if tool.once else await tool.run(arguments, self._asker)
            fixed = await tool.fix(arguments) if tool.fix is not None else arguments
            if not self._lease.valid:
                return "refused", Result(OUTDATED, anybody)
            frozen = self._toolbox.frozen.freeze(tool, fixed, self._asker, self._lease)
        except ToolError as error:
            return "failed", Result(tool.as_data(str(error)), only(self._asker))
        self._frozen.append((call, frozen))
        try:
            await frozen.posted.wait()
        except asyncio.CancelledError:
            if not (tool.asks or frozen.is_behind):
                self._frozen.remove((call, frozen))
                frozen.stop("over")
            raise
        if frozen.problem is None and (tool.asks or frozen.is_behind):
            return "asked" if tool.asks else "goes on", frozen
        self._frozen.remove((call, frozen))
        return frozen.outcome or "failed", Result(frozen.problem or frozen.result, frozen.knows)

    async def _run_once(self, tool: RoomTool, arguments: Mapping[str, object]) -> tuple[ToolOutcome, Result]:
        """Run a tool unless it was called for this question, whichever model answered it then."""
        done = self._toolbox.called_once
        call = (tool.name, self if self._answering is None else self._answering)
        if call in done:
            again = f"{tool.name} was called for this question already. Do not call it again."
            return "refused", Result(again, anybody)
        done.append(call)
        return await tool.run(arguments, self._asker)
