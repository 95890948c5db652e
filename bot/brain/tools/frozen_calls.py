"""The tool calls of a room that outlive their reply: those that wait until the person who asked has pressed a button,
and those of slow tools, which go on behind the talk.

The first are posted in the voice channel's chat with their tool, server and all arguments, and carried out exactly as
posted. Whatever is said, none runs without the press: what people mean is the model's to say, consent is theirs. Of the
others people read that they run, with a button that stops them. The result of both is told at a free moment.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import structlog

from bot.background_task import cancel_all, logged_task, owned_task
from bot.brain.tools.tool import UNSURE, Asker, Result, RoomTool, ToolError, ToolOutcome
from bot.channel.port import CallRequest, ChatError
from bot.places import Places
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from bot.channel.port import CallMessage, OnPress, Person
    from bot.words import Lease

    # Posts a call with its buttons (`RoomChannel.ask_for_press`). Raises `ChatError`.
    ShowCall = Callable[[CallRequest, OnPress], Awaitable[CallMessage]]
    # Returns a tool as it is now, if it may run for this person now.
    FindTool = Callable[[str, int, frozenset[int]], RoomTool | None]

log = structlog.get_logger()

# A press that comes later is probably about something else.
LAPSE_S = 120.0
# How long a reply waits for a slow tool. People who listen for longer take the bot for gone.
REPLY_WAITS_S = 6.0

# How long the message of a call may take to say what became of it when its room ends.
CONCLUDE_S = 5.0

# What a model reads in place of a result.
WAITS = "Nothing is done yet: it waits for who asked to press Do it in the voice channel's chat, for two minutes."
RUNS = "It is being done now. What comes of it is told by itself: do not call it again."
WITHDRAWN = "It was stopped: somebody's words were withdrawn meanwhile. It has to be asked for again."
STOPPED = "It was stopped, and nothing came of it. It has to be asked for again."
TOO_MANY = "Nothing is done: too many calls wait for a press or run already. Say so."
TOO_MANY_OF_ONE = "Nothing is done: too many calls of who asked wait for a press or run already. Say so."
# Of one room, those included that run or whose result is not told yet. More would fill the chat.
PLACES: Final = Places(5, 3, TOO_MANY, TOO_MANY_OF_ONE)

# To a press that nobody waits for: it may be the second one, or on a card of an earlier process.
TOO_LATE = Text("You pressed too late, so nothing changes. If I know the result, you see it below.")
# What ends the waiting of a call.
Press = Literal["do it", "don't", "lapsed", "withdrawn"]
# What people read below the call at its end, and a model as its result.
_NOT_DONE: dict[Press, tuple[Text, str]] = {
    "don't": (Text("I did not do it, because {name} said no."), "It was not done: who asked has pressed Don't."),
    "lapsed": (
        Text("I did not do it, because nobody pressed the button in time."),
        "It was not done: nobody pressed Do it in time. It has to be asked for again.",
    ),
    "withdrawn": (Text("I did not do it, because somebody no longer wants me to use their words."), WITHDRAWN),
}
# Why a call ended that ran behind the talk, and what people read of it.
Stop = Literal["asked", "over", "withdrawn"]
_STOPPED: dict[Stop, Text] = {
    "asked": Text("I stopped this for {name}."),
    "over": Text("I stopped, because the session is over."),
    "withdrawn": Text("I stopped, because somebody no longer wants me to use their words."),
}
# What became of a call that ran, by how it ended; of any other end nobody knows.
Effect = Literal["done", "failed", "not known"]
_EFFECTS: dict[ToolOutcome, Effect] = {"answered": "done", "failed": "failed"}
# The same of one that ran. `WORDLESS`: if words were withdrawn meanwhile, which what the tool answered may hold.
_ENDED: dict[Effect, Text] = {
    "done": Text("I did this for {name}."),
    "failed": Text("I tried to do this for {name}, but it failed."),
    "not known": Text("I tried to do this for {name}. I do not know if it worked."),
}
WORDLESS: dict[Effect, str] = {
    "done": "It was done. What came of it may not be used: somebody's words were withdrawn meanwhile.",
    "failed": "It failed. Why may not be used: somebody's words were withdrawn meanwhile.",
    "not known": UNSURE,
}


@dataclass(slots=True, eq=False)
class FrozenCall:
    """One call that waits or runs, and then what became of it. `result`, its text: what a model reads as its result by
    now. `knows`: returns whether somebody may know that. `posted`: set once its reply need not wait for it: it is
    posted, or cannot be (`problem`), it runs on behind the talk (`is_behind`), or it has ended. `outcome`, `effect`:
    how it ended if it ran; `stopped`: why before its end. `lease`: of the words that it was made of.
    """

    tool: RoomTool
    arguments: Mapping[str, object]
    asker: Asker
    knows: Callable[[Asker], bool]
    lease: Lease
    result: str = WAITS
    posted: asyncio.Event = field(default_factory=asyncio.Event)
    problem: str | None = None
    press: asyncio.Future[Press] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    running: asyncio.Task[tuple[ToolOutcome, Result]] | None = None
    is_behind: bool = False
    outcome: ToolOutcome | None = None
    effect: Effect | None = None
    stopped: Stop | None = None

    def __str__(self) -> str:
        return self.result

    @property
    def runs(self) -> bool:
        """Whether it runs, and no reply waits for it."""
        return (self.is_behind or self.tool.asks) and self.running is not None and not self.running.done()

    def end(self, press: Press) -> None:
        """End the waiting, unless it has ended."""
        if not self.press.done():
            self.press.set_result(press)

    def run(self) -> AbstractAsyncContextManager[asyncio.Task[tuple[ToolOutcome, Result]]]:
        """Run the tool for the duration of a block."""
        return owned_task(self.tool.run(self.arguments, self.asker), name=f"tool-{self.tool.name[:40]}")

    def stop(self, why: Stop) -> bool:
        """Give up what runs. Return False if nothing does."""
        if self.running is None or not self.running.cancel():
            return False
        self.stopped = self.stopped or why
        return True

    def withdraw(self) -> None:
        """End the waiting, or what runs behind the talk: the words may be in it. What runs on a press was sent, so it
        runs to its end and what came of it is told, without the words of its result.
        """
        self.end("withdrawn")
        if not self.tool.asks:
            self.stop("withdrawn")
        if self.effect is not None:
            self.result = WORDLESS[self.effect]

    def conclude(self) -> Text:
        """Keep what came of it, once it has run. Return what people read of that."""
        assert self.running is not None, "it has run"
        # Cancelled: it was stopped, and may have been done.
        lost: tuple[ToolOutcome, Result] = ("lost", Result(UNSURE, self.knows))
        self.outcome, found = lost if self.running.cancelled() else self.running.result()
        self.knows = found.knows
        self.effect = _EFFECTS.get(self.outcome, "not known")
        if self.stopped is not None and not self.tool.asks:
            self.result = STOPPED
            return _STOPPED[self.stopped]
        self.result = found.text if self.lease.valid else WORDLESS[self.effect]
        return _ENDED[self.effect]


class FrozenCalls:
    """The calls of one room. `show` posts one; `find` returns a tool if somebody may still have it run.

    `on_done`: awaited after each call that ended after its reply, to tell its result. *Ownership*: `aclose` ends all
    calls; `finish` first lets those end that run on a press.
    """

    def __init__(
        self,
        show: ShowCall,
        find: FindTool,
        on_done: Callable[[FrozenCall], Awaitable[None]] | None = None,
        *,
        lapse_s: float = LAPSE_S,
        reply_waits_s: float = REPLY_WAITS_S,
    ) -> None:
        self._show = show
        self._find = find
        self._lapse_s = lapse_s
        self._reply_waits_s = reply_waits_s
        self._calls: dict[asyncio.Task[None], FrozenCall] = {}
        self._is_over = False
        self.on_done = on_done

    async def aclose(self) -> None:
        """End all calls, also those that run."""
        await cancel_all(self._calls)

    def running_for(self, user_id: int | None) -> list[FrozenCall]:
        """Return the calls of one person that run and that no reply waits for."""
        return [call for call in self._calls.values() if call.runs and call.asker.user_id == user_id]

    def freeze(self, tool: RoomTool, arguments: Mapping[str, object], asker: Asker, lease: Lease) -> FrozenCall:
        """Begin to ask for a press, or to run a slow tool that asks nobody. What waits for a press goes on if its reply
        is cancelled meanwhile. Raises `ToolError`.
        """
        taken = [call.asker.user_id for call in self._calls.values()]
        if refusal := TOO_MANY if self._is_over else PLACES.refusal(taken, asker.user_id):
            raise ToolError(refusal)
        # A copy, so that nothing changes it between the card and the press.
        call = FrozenCall(tool, deepcopy(dict(arguments)), asker, tool.permits, lease, WAITS if tool.asks else RUNS)
        lease.on_end(call.withdraw)
        life = self._wait_for_press(call) if tool.asks else self._run_on(call)
        task = logged_task(life, name=f"frozen-{tool.name[:40]}")
        self._calls[task] = call
        task.add_done_callback(self._calls.pop)
        return call

    async def finish(self, *, within_s: float) -> None:
        """Let no call wait or run behind the talk any more, and those end that run on a press, for so many seconds at
        most. What runs on after that is given up: it is not known whether it was done.
        """
        self._is_over = True
        for call in self._calls.values():
            call.end("lapsed")
            if not call.tool.asks:
                call.stop("over")
        if tasks := tuple(self._calls):
            await asyncio.wait(tasks, timeout=within_s)
        stopped = [call for call in self._calls.values() if call.stop("over")]
        if stopped and (tasks := tuple(self._calls)):
            await asyncio.wait(tasks, timeout=CONCLUDE_S)

    def _pressed(self, call: FrozenCall, person: Person, do_it: bool) -> Text | None:
        """Take a press; return why it does not count, or None if it does."""
        if person.id != call.asker.user_id:
            return Text("Only {name} can press this, because {name} asked.", name=call.asker.name)
        if not call.tool.asks:
            return None if call.stop("asked") else TOO_LATE
        if call.press.done():
            return TOO_LATE
        if do_it:
            found = self._find(call.tool.name, person.id, person.roles)
            if found != call.tool:
                return Text("You are not allowed to do that now, or I can no longer do it.")
        call.end("do it" if do_it else "don't")
        return None

    def _post(self, call: FrozenCall) -> Awaitable[CallMessage]:
        tool = call.tool
        shown = call.arguments if tool.asks else None
        request = CallRequest(call.asker.name, tool.title or tool.name, tool.server, shown)
        return self._show(request, partial(self._pressed, call))

    async def _wait_for_press(self, call: FrozenCall) -> None:
        try:
            message = await self._post(call)
        except ChatError as error:
            call.problem = str(error)
            return
        finally:
            call.posted.set()
        await asyncio.wait({call.press}, timeout=self._lapse_s)
        call.end("lapsed")
        press = call.press.result()
        if press == "do it" and not call.lease.valid:
            # Between the press and now. Nothing was sent.
            press = "withdrawn"
        log.info("call_pressed", tool=call.tool.name, press=press)
        if press != "do it":
            conclusion, call.result = _NOT_DONE[press]
            await message.conclude(conclusion.fill(name=call.asker.name))
            return
        call.result = RUNS
        async with call.run() as call.running:
            await asyncio.wait({call.running})
        await self._tell(call, message)

    async def _run_on(self, call: FrozenCall) -> None:
        """Run a call for its reply, and behind the talk if that takes longer than the reply waits."""
        message: CallMessage | None = None
        async with call.run() as call.running:
            await asyncio.wait({call.running}, timeout=self._reply_waits_s)
            if not call.running.done():
                call.is_behind = True
                call.posted.set()
                # Where it cannot be posted, people can still say that it shall stop.
                with suppress(ChatError):
                    message = await self._post(call)
                await asyncio.wait({call.running})
        if call.is_behind:
            await self._tell(call, message)
        else:
            call.conclude()
            call.posted.set()

    async def _tell(self, call: FrozenCall, message: CallMessage | None) -> None:
        """Let people know what became of a call that no reply waits for."""
        conclusion = call.conclude()
        log.info(
            "tool_called",
            tool=call.tool.name,
            outcome=call.outcome,
            effect=call.effect,
            stopped=call.stopped,
            output_chars=len(call.result),
        )
        if message is not None:
            await message.conclude(conclusion.fill(name=call.asker.name))
        if self.on_done is not None and call.lease.valid and call.stopped is None:
            await self.on_done(call)
