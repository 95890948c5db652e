"""Who may know what a call of each tool has returned."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC
from types import SimpleNamespace
from typing import Any, cast

from bot.brain.tools.built_in import attachment_tools, be_quiet_tools, link_tool, reads_chat, stop_tools
from bot.brain.tools.memory import missed_tools
from bot.brain.tools.tool import Asker, RoomTool, ToolError
from bot.conversation.reminding import reminder_tools
from compaction.memory.digest import Digest
from tests.bot.brain.tools.calls import ADA, Book
from tests.fakes.chat import FakeChat
from tests.fakes.clock import FakeClock

# Who has not asked.
OTHERS = {"there": Asker(2, present=True), "reads the chat": Asker(3, reads_chat=True), "is gone": Asker(4)}


async def failing(_: Mapping[str, object]) -> Any:
    raise ToolError("There is no such walrus.")


async def broken(_: Mapping[str, object]) -> Any:
    raise ValueError


async def hanging(_: Mapping[str, object]) -> Any:
    await asyncio.Event().wait()


async def test_what_a_call_returns_is_for_those_who_may_know_it() -> None:
    """What a person asks about themselves, and what failed for them, is theirs alone."""
    chat = FakeChat()
    own, others = attachment_tools(chat, ADA, max_bytes=20, zone=UTC)
    (remind, *_) = reminder_tools(ADA, Book(), clock=FakeClock(0.0), zone=UTC)
    (quiet,) = be_quiet_tools(ADA, lambda *_: None)
    running = SimpleNamespace(tool=own, stop=lambda _: True)
    (stop,) = stop_tools(ADA, cast("Any", SimpleNamespace(running_for=lambda _: [running])))
    digests = [None, Digest(0.0, 9.0, 0)]

    async def of_digest(_: int) -> Digest | None:
        return digests.pop()

    (missed,) = missed_tools(ADA, of_digest)
    any_tool = RoomTool("any", "", {}, failing, asks=False, permits=reads_chat)

    async def knowers(tool: RoomTool, **arguments: object) -> list[str]:
        fixed = arguments if tool.fix is None else await tool.fix(arguments)
        _, result = await tool.run(fixed, ADA)
        return [name for name, each in OTHERS.items() if result.knows(each)]

    assert await knowers(own, page=1) == ["reads the chat"]
    chat.drop("notes.txt", b"4411")
    chat.drop("diary.txt", b"4411", by="Bo", by_id=2)
    assert await knowers(own, page=1) == await knowers(others, file="diary", page=1) == ["reads the chat"]
    assert await knowers(link_tool(chat), url="https://example.org") == ["there"]
    assert await knowers(quiet) == await knowers(stop) == ["there"]
    assert await knowers(remind, minutes=10, what="the walrus") == ["there"]
    assert await knowers(remind, action="list") == []
    assert await knowers(remind, action="delete", number=1) == ["there"]
    assert await knowers(missed) == await knowers(missed) == []
    assert await knowers(replace(any_tool, call=failing)) == []
    assert await knowers(replace(any_tool, call=broken)) == ["reads the chat"]
    assert await knowers(replace(any_tool, call=hanging, timeout_s=0.0)) == ["reads the chat"]
