"""The tool calls of a room that wait until the person who asked has pressed a button.

Each is posted in the voice channel's chat with its tool, its server and all arguments, and is carried out exactly as
posted. Whatever is said, nothing runs without the press: what people mean is the model's to say, consent is theirs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import structlog

from bot.background_task import logged_task, owned_task
from bot.brain.tools.tool import ToolError
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

# What a model reads in place of a result.
WAITS = "Nothing is done yet: it waits for who asked to press Do it in the voice channel's chat, for two minutes."
WITHDRAWN = "It was stopped: somebody's words were withdrawn meanwhile. It has to be asked for again."
TOO_MANY = "Nothing is done: too many calls wait for a press already. Say so."

LAPSED = Text("This has lapsed and nothing was done. Ask me again.")
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
_DONE: dict[ToolOutcome, Text] = {
    "answered": Text("Done for {name}."),
    "failed": Text("Tried for {name}: it failed."),
    "timeout": Text("Tried for {name}: it took too long, and I cannot tell whether it was done."),
    "broken": Text("Tried for {name}: it failed."),
}


@dataclass(slots=True, eq=False)
class FrozenCall:
    """One call that waits, and then what became of it. `result`, its text: what a model reads as its result by now.
    `posted`: set once it is posted, or cannot be (`problem`).
    """

    tool: RoomTool
    arguments: Mapping[str, object]
    asker: Asker
    result: str = WAITS
    posted: asyncio.Event = field(default_factory=asyncio.Event)
    problem: str | None = None
    press: asyncio.Future[Press] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    running: asyncio.Task[tuple[ToolOutcome, str]] | None = None

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
        call = FrozenCall(tool, arguments, asker)
        task = logged_task(self._live(call), name=f"frozen-{tool.name[:40]}")
        self._calls[task] = call
        task.add_done_callback(self._calls.pop)
        return call

    def withdraw(self) -> None:
        """End all calls at once: words that may not be used any more may be in them."""
        for call in self._calls.values():
            call.end("withdrawn")
            if call.running is not None:
                call.running.cancel()

    async def finish(self, *, within_s: float) -> None:
        """Let no call wait any more, and those that run end, for so many seconds at most."""
        self._is_over = True
        for call in self._calls.values():
            call.end("lapsed")
        if tasks := tuple(self._calls):
            await asyncio.wait(tasks, timeout=within_s)

    def _pressed(self, call: FrozenCall, person: Person, do_it: bool) -> Text | None:
        """Take a press; return why it does not count, or None if it does."""
        if person.id != call.asker.user_id:
            return Text("Only {name} can press that: it was their question.", name=call.asker.name)
        if call.press.done():
            return LAPSED
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
        if press == "do it":
            conclusion = await self._carry_out(call)
        else:
            conclusion, call.result = _NOT_DONE[press]
        log.info("call_pressed", tool=call.tool.name, press=press)
        await message.conclude(conclusion.fill(name=call.asker.name))
        if self.on_done is not None and press == "do it" and call.result != WITHDRAWN:
            await self.on_done(call)

    async def _carry_out(self, call: FrozenCall) -> Text:
        """Run a call, and keep its result. Return what people read of it."""
        call.result = "It is being done now."
        async with owned_task(call.tool.run(call.arguments), name=f"tool-{call.tool.name[:40]}") as call.running:
            await asyncio.wait({call.running})
        if call.running.cancelled():
            conclusion, call.result = _NOT_DONE["withdrawn"]
            return conclusion
        outcome, call.result = call.running.result()
        log.info("tool_called", tool=call.tool.name, outcome=outcome, output_chars=len(call.result))
        return _DONE[outcome]
