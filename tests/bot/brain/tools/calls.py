"""Tools for tests that keep their calls, and what a model reads of one call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from bot.brain.tools.tool import Asker, Result, RoomTool, anybody
from bot.brain.tools.toolbox import QuestionTools, Toolbox, reach_in
from bot.channel.port import Person
from bot.conversation.reminding import Reminding
from bot.llm.port import ChatMessage
from bot.store.reminders import Reminder
from compaction.model import SessionId
from compaction.payload import MessageToolCall
from tests.fakes.room_channel import FakeRoomChannel

ADA = Asker(1, "Ada", present=True)
ADA_HERSELF, BO = Person(1, "Ada", is_bot=False), Person(2, "Bo", is_bot=False)
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def for_all(
    call: Callable[[Mapping[str, object]], Awaitable[str]], knows: Callable[[Asker], bool] = anybody
) -> Callable[[Mapping[str, object]], Awaitable[Result]]:
    """Return the function of a tool whose results are for everybody, or for those of whom `knows` says so."""

    async def called(arguments: Mapping[str, object]) -> Result:
        return Result(await call(arguments), knows)

    return called


def a_call(name: str, text: str = "hello") -> MessageToolCall:
    return MessageToolCall("c", name, json.dumps({"text": text}))


def kept_messages(toolbox: Toolbox, turn: int) -> list[ChatMessage]:
    """Return what a toolbox keeps of the replies to a turn, as a model reads it."""
    return [message for step in toolbox.exchanges.steps({turn})[turn] for message in step.messages()]


async def told(use: QuestionTools, call: MessageToolCall) -> str:
    """Return what the model reads after a call."""
    (result,) = await use.run_all([call])
    return str(result)


class Desk:
    """A room with a tool that only reads, `echo`, and one that asks first, `post`, which keep their calls.

    `goes_on`: clear it, and the tools wait for it.
    """

    def __init__(self, *, lapse_s: float = 3600.0, reply_waits_s: float = 3600.0) -> None:
        self.called: list[str] = []
        self.error: BaseException | None = None
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.channel = FakeRoomChannel(people=[ADA_HERSELF, BO])
        self.echo = RoomTool("echo", "Echoes.", SCHEMA, for_all(self._call), asks=False, permits=anybody)
        self.post = replace(
            self.echo, name="post", description="Posts.", asks=True, permits=lambda each: self.allowed and each.present
        )
        self.allowed = True
        self.more: list[RoomTool] = []
        self.toolbox = Toolbox(
            [self.echo, self.post],
            personal=lambda _: self.more,
            ask_for_press=self.channel.ask_for_press,
            reach=partial(reach_in, self.channel),
            lapse_s=lapse_s,
            reply_waits_s=reply_waits_s,
        )

    async def _call(self, arguments: Mapping[str, object]) -> str:
        await self.goes_on.wait()
        self.called.append(str(arguments["text"]))
        if self.error is not None:
            raise self.error
        return f"You said {arguments['text']}"


class Book(Reminding):
    """The reminders of a room, in memory. `is_full`: it takes no more."""

    def __init__(self) -> None:
        self.kept: list[Reminder] = []
        self.is_full = False

    async def add(self, person_id: int, due_at: float, *, what: str, whom: str, in_chat: bool) -> bool:
        if not self.is_full:
            self.kept.append(
                Reminder(SessionId("s"), 10, 20, person_id, due_at, what, whom, in_chat, id=len(self.kept) + 1)
            )
        return not self.is_full

    async def told_to(self, person_id: int) -> Sequence[tuple[str, Reminder]]:
        return [(f"person {each.person_id}", each) for each in self.kept]

    async def delete(self, number: int) -> bool:
        before = len(self.kept)
        self.kept = [each for each in self.kept if each.id != number]
        return len(self.kept) < before
