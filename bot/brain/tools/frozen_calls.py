"""The tool calls of a room that wait until the person who asked has pressed a button.

Each is posted in the voice channel's chat with its tool, its server and all arguments, and is carried out exactly as
posted. Whatever is said, nothing runs without the press: what people mean is the model's to say, consent is theirs.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import structlog

from bot.background_task import logged_task, owned_task
from bot.brain.tools.tool import UNSURE, ToolError
from bot.channel.port import CallRequest, ChatError
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from bot.brain.tools.tool import Asker, RoomTool, ToolOutcome
    from bot.channel.port import CallMessage, OnPress, Person

    # Posts a call with its buttons (`RoomChannel.ask_for_press`). Raises `ChatError`.
    ShowCall = Callable[[CallRequest, OnPress], Awaitable[CallMessage]]
    # Returns a tool as it is now, if it may run for this person now.
    FindTool = Callable[[str, int, frozenset[int]], RoomTool | None]

log = structlog.get_logger()

# A press that comes later is probably about something else.
LAPSE_S = 120.0
# Of one room, those included that run or whose result is not told yet. More would fill the chat.
MOST_WAITING = 5

# How long the message of a call may take to say what became of it when its room ends.
CONCLUDE_S = 5.0

# What a model reads in place of a result.
WAITS = "Nothing is done yet: it waits for who asked to press Do it in the voice channel's chat, for two minutes."
RUNS = "Who asked has pressed Do it. It is being done now."
WITHDRAWN = "It was stopped: somebody's words were withdrawn meanwhile. It has to be asked for again."
TOO_MANY = "Nothing is done: too many calls wait for a press already. Say so."

# To a press that nobody waits for: it may be the second one, or on a card of an earlier process.
TOO_LATE = Text("This press comes too late and changes nothing. What became of the call stands below it, if I know.")
# What ends the waiting of a call.
Press = Literal["do it", "don't", "lapsed", "withdrawn"]
# What people read below the call at its end, and a model as its result.
_NOT_DONE: dict[Press, tuple[Text, str]] = {
    "don't": (Text("Not done: {name} said no."), "It was not done: who asked has pressed Don't."),
    "lapsed": (
        Text("Not done: nobody pressed in time."),
        "It was not done: nobody pressed Do it in time. It has to be asked for again.",
    ),
    "withdrawn": (Text("Not done: somebody's words were withdrawn meanwhile."), WITHDRAWN),
}
# What became of a call that ran.
Effect = Literal["done", "failed", "not known"]
# The same of one that ran. `WORDLESS`: if words were withdrawn meanwhile, which what the tool answered may hold.
_ENDED: dict[Effect, Text] = {
    "done": Text("Done for {name}."),
    "failed": Text("Tried for {name}: it failed."),
    "not known": Text("Tried for {name}: I cannot tell whether it was done."),
}
WORDLESS: dict[Effect, str] = {
    "done": "It was done. What came of it may not be used: somebody's words were withdrawn meanwhile.",
    "failed": "It failed. Why may not be used: somebody's words were withdrawn meanwhile.",
    "not known": UNSURE,
}


@dataclass(slots=True, eq=False)
class FrozenCall:
    """One call that waits, and then what became of it. `result`, its text: what a model reads as its result by now.
    `posted`: set once it is posted, or cannot be (`problem`). `effect`: what became of it if it ran.
    `is_withdrawn`: words that it was made of may not be used any more.
    """

    tool: RoomTool
    arguments: Mapping[str, object]
    asker: Asker
    result: str = WAITS
    posted: asyncio.Event = field(default_factory=asyncio.Event)
    problem: str | None = None
    press: asyncio.Future[Press] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    running: asyncio.Task[tuple[ToolOutcome, str]] | None = None
    effect: Effect | None = None
    is_withdrawn: bool = False

    def __str__(self) -> str:
        return self.result

    def end(self, press: Press) -> None:
        """End the waiting, unless it has ended."""
        if not self.press.done():
            self.press.set_result(press)


class FrozenCalls:
    """The calls of one room. `show` posts one; `find` returns a tool if somebody may still have it run.

    `on_done`: awaited after each call that ran, to tell its result. *Ownership*: `aclose` ends all calls; `finish`
    first lets those end that run.
    """

    def __init__(self, show: ShowCall, find: FindTool, *, lapse_s: float = LAPSE_S) -> None:
        self._show = show
        self._find = find
        self._lapse_s = lapse_s
        self._calls: dict[asyncio.Task[None], FrozenCall] = {}
        self._is_over = False
        self.on_done: Callable[[FrozenCall], Awaitable[None]] | None = None

    async def aclose(self) -> None:
        """End all calls, also those that run."""
        tasks = tuple(self._calls)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def freeze(self, tool: RoomTool, arguments: Mapping[str, object], asker: Asker) -> FrozenCall:
        """Begin to ask for a press. It goes on if the reply is cancelled meanwhile. Raises `ToolError`."""
        if self._is_over or len(self._calls) >= MOST_WAITING:
            raise ToolError(TOO_MANY)
        # A copy, so that nothing changes it between the card and the press.
        call = FrozenCall(tool, deepcopy(dict(arguments)), asker)
        task = logged_task(self._live(call), name=f"frozen-{tool.name[:40]}")
        self._calls[task] = call
        task.add_done_callback(self._calls.pop)
        return call

    def withdraw(self) -> None:
        """End the calls that wait: words that may not be used any more may be in them. What runs was sent, so it runs
        to its end and what came of it is told, without the words of its result.
        """
        for call in self._calls.values():
            call.is_withdrawn = True
            call.end("withdrawn")
            if call.effect is not None:
                call.result = WORDLESS[call.effect]

    async def finish(self, *, within_s: float) -> None:
        """Let no call wait any more, and those that run end, for so many seconds at most. What runs on after that is
        given up: it is not known whether it was done.
        """
        self._is_over = True
        for call in self._calls.values():
            call.end("lapsed")
        if tasks := tuple(self._calls):
            await asyncio.wait(tasks, timeout=within_s)
        running = [call.running for call in self._calls.values() if call.running and not call.running.done()]
        for each in running:
            each.cancel()
        if running and (tasks := tuple(self._calls)):
            await asyncio.wait(tasks, timeout=CONCLUDE_S)

    def _pressed(self, call: FrozenCall, person: Person, do_it: bool) -> Text | None:
        """Take a press; return why it does not count, or None if it does."""
        if person.id != call.asker.user_id:
            return Text("Only {name} can press that: it was their question.", name=call.asker.name)
        if call.press.done():
            return TOO_LATE
        if do_it:
            found = self._find(call.tool.name, person.id, person.roles)
            if found != call.tool:
                return Text("You may not have that done now, or I cannot do it any more.")
        call.end("do it" if do_it else "don't")
        return None

    async def _live(self, call: FrozenCall) -> None:
        request = CallRequest(call.asker.name, call.tool.title or call.tool.name, call.tool.server, call.arguments)
        try:
            message = await self._show(request, partial(self._pressed, call))
        except ChatError as error:
            call.problem = str(error)
            return
        finally:
            call.posted.set()
        await asyncio.wait({call.press}, timeout=self._lapse_s)
        call.end("lapsed")
        press = call.press.result()
        if press == "do it" and call.is_withdrawn:
            # Between the press and now. Nothing was sent.
            press = "withdrawn"
        if press == "do it":
            conclusion = await self._carry_out(call)
        else:
            conclusion, call.result = _NOT_DONE[press]
        log.info("call_pressed", tool=call.tool.name, press=press)
        await message.conclude(conclusion.fill(name=call.asker.name))
        if self.on_done is not None and press == "do it" and not call.is_withdrawn:
            await self.on_done(call)

    async def _carry_out(self, call: FrozenCall) -> Text:
        """Run a call, and keep its result. Return what people read of it."""
        call.result = RUNS
        async with owned_task(call.tool.run(call.arguments), name=f"tool-{call.tool.name[:40]}") as call.running:
            await asyncio.wait({call.running})
        # Cancelled when the room ends: it may have been done.
        outcome, result = ("lost", "") if call.running.cancelled() else call.running.result()
        effect: Effect = "done" if outcome == "answered" else "failed" if outcome == "failed" else "not known"
        call.effect = effect
        call.result = WORDLESS[effect] if call.is_withdrawn else result
        log.info("tool_called", tool=call.tool.name, outcome=outcome, effect=effect, output_chars=len(result))
        return _ENDED[effect]
