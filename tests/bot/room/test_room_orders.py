"""The question before an effect in a whole room: asked aloud, and carried out on the asker's spoken yes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bot.brain.reply import HAS_BEGUN, TOO_SLOW
from bot.brain.responder import ModelResponder
from bot.brain.tools.links import link_tool
from bot.brain.tools.settings import ToolsSettings
from bot.brain.tools.toolbox import Toolbox
from bot.llm.port import FinishReason, StreamEnd
from compaction.payload import MessageToolCall
from compaction.session import SessionMemory
from tests.bot.brain.test_responder_tools import Thinker
from tests.bot.room.room_scene import a_house, living, settle
from tests.fakes.chat import FakeChat
from tests.fakes.place import ADA, BO

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from bot.brain.tools.tool import RoomTool
    from bot.channel.port import Person
    from bot.llm.port import StreamItem
    from bot.room.room import Room
    from tests.bot.room.room_scene import House

POST = MessageToolCall("c", "post_link", '{"url": "https://maps.example/lisbon"}')
ASKS = StreamEnd(FinishReason.TOOL_CALLS, (POST,))
END = StreamEnd(FinishReason.STOP)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("who", "answer", "posted"),
    [
        (ADA, "Yes, please.", True),
        (ADA, "No, thanks, Roomtone.", False),
        (BO, "Roomtone, yes please.", False),
    ],
)
async def test_only_the_askers_yes_posts(tmp_path: Path, who: Person, answer: str, posted: bool) -> None:
    """A doubtful order makes the bot ask aloud; nothing is posted before the asker's yes, or on anybody else's."""
    async with a_house(tmp_path) as house:
        chat = FakeChat()
        toolbox = Toolbox([link_tool(chat)])
        model = Thinker((ASKS,), ("All right.", END))
        house.toolbox = lambda *_: toolbox
        house.new_responder = lambda: ModelResponder(model, max_output_tokens=77)
        house.can_skip = True
        async with living(house):
            await house.say(ADA.id, "Roomtone, you can put it in the chat now.")
            assert (await house.reply(1)).text == "Shall I post the link maps dot example lisbon in the chat?"
            assert chat.posted == []
            # So short a text is recognised twice.
            house.recogniser.texts.append(answer)
            await house.say(who.id, answer)
            assert (await house.reply(2)).text == "All right."
            assert chat.posted == (["https://maps.example/lisbon"] if posted else [])


@pytest.mark.asyncio
async def test_a_yes_posts_nothing_once_words_were_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who is known only from an earlier session had themselves forgotten: the link may be of their words."""
    async with a_house(tmp_path) as house:
        chat = FakeChat()
        toolbox = Toolbox([link_tool(chat)])
        model = Thinker((ASKS,), ("All right.", END))
        house.toolbox = lambda *_: toolbox
        house.new_responder = lambda: ModelResponder(model, max_output_tokens=77)
        house.can_skip = True
        async with living(house):
            await house.say(ADA.id, "Roomtone, you can put it in the chat now.")
            await house.reply(1)
            monkeypatch.setattr(SessionMemory, "external_changes", 1)
            house.recogniser.texts.append("Yes, please.")
            await house.say(ADA.id, "Yes, please.")
            await house.reply(2)
            assert chat.posted == []


@pytest.mark.asyncio
async def test_an_order_needs_no_question(tmp_path: Path) -> None:
    """A plain order is carried out at once."""
    async with a_house(tmp_path) as house:
        chat = FakeChat()
        toolbox = Toolbox([link_tool(chat)])
        model = Thinker((ASKS,), ("It is there.", END))
        house.toolbox = lambda *_: toolbox
        house.new_responder = lambda: ModelResponder(model, max_output_tokens=77)
        async with living(house):
            await house.say(ADA.id, "Roomtone, could you put the link in the chat?")
            assert (await house.reply(1)).text == "It is there."
            assert chat.posted == ["https://maps.example/lisbon"]


def give_tool(house: House, tool: RoomTool, model: Thinker) -> None:
    """Let `model` answer, who is offered one tool and says nothing before its result."""
    toolbox = Toolbox([tool])
    house.toolbox = lambda *_: toolbox
    house.new_responder = lambda: ModelResponder(model, max_output_tokens=77, tools=ToolsSettings(filler=""))


async def think_too_long(room: Room) -> None:
    """Use up the time of the answer that is being made, and never end."""
    assert room._conversation is not None
    room._conversation._replier._end_within(0.0)
    await asyncio.Event().wait()


@pytest.mark.asyncio
async def test_an_order_that_outlives_its_answer_is_told(tmp_path: Path) -> None:
    """Whoever reads that they should ask again would have it posted twice. It does not go on for whoever else asks."""
    async with a_house(tmp_path) as house:
        chat = FakeChat()
        goes_on = asyncio.Event()
        link = link_tool(chat)

        async def post(arguments: Mapping[str, object]) -> str:
            assert room._conversation is not None
            room._conversation._replier._end_within(0.0)
            await goes_on.wait()
            return await link.call(arguments)

        class Slow(Thinker):
            async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamItem, None]:
                """Think for too long about a second question."""
                if self.asked:
                    await think_too_long(room)
                async for item in super().stream(*args, **kwargs):
                    yield item

        give_tool(house, replace(link, call=post), Slow((ASKS,)))
        async with living(house) as (room, _):
            await house.say(ADA.id, "Roomtone, could you put the link in the chat?")
            await settle(lambda: HAS_BEGUN in house.place.written)
            await house.say(BO.id, "Roomtone, what is the capital of Portugal?")
            await settle(lambda: TOO_SLOW in house.place.written)
            goes_on.set()
            await settle(lambda: chat.posted == ["https://maps.example/lisbon"])


@pytest.mark.asyncio
async def test_an_order_that_is_done_without_an_answer_is_told(tmp_path: Path) -> None:
    """The link is in the chat, but the model thinks for too long about what to say of it."""
    async with a_house(tmp_path) as house:
        chat = FakeChat()

        class Slow(Thinker):
            async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamItem, None]:
                """Call the tool, then think for too long."""
                if chat.posted:
                    await think_too_long(room)
                async for item in super().stream(*args, **kwargs):
                    yield item

        give_tool(house, link_tool(chat), Slow((ASKS,)))
        async with living(house) as (room, _):
            await house.say(ADA.id, "Roomtone, could you put the link in the chat?")
            await settle(lambda: HAS_BEGUN in house.place.written)
            await house.say(ADA.id, "Roomtone, what is the capital of Portugal?")
            await settle(lambda: TOO_SLOW in house.place.written)
            assert chat.posted == ["https://maps.example/lisbon"]
