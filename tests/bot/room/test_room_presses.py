"""A call that waits for a press in a whole room: asked aloud, done on the asker's press, told and recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.responder import PRESS_FIRST, ModelResponder
from bot.brain.tools.tool import RoomTool
from bot.brain.tools.toolbox import Toolbox
from bot.llm.port import ChatRole, FinishReason, StreamEnd
from bot.room.conversation.prompt import TYPED
from compaction.payload import MessageToolCall
from tests.bot.brain.test_responder import Thinker
from tests.bot.room.room_scene import a_house, living, settle
from tests.bot.room.test_room_participation import silenceable
from tests.bot.room.test_room_typed_talk import Message
from tests.fakes.place import ADA, BO

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.bot.room.room_scene import House

END = StreamEnd(FinishReason.STOP)


def asks(text: str) -> StreamEnd:
    return StreamEnd(FinishReason.TOOL_CALLS, (MessageToolCall(text, "note", f'{{"text": "{text}"}}'),))


def furnish(house: House, model: Thinker) -> list[str]:
    """Give a house a tool that asks first, and a model. Return what is noted by it."""
    noted: list[str] = []

    async def note(arguments: Mapping[str, object]) -> str:
        noted.append(str(arguments["text"]))
        return f"Note {len(noted)} says {arguments['text']}."

    toolbox = Toolbox(
        [RoomTool("note", "Notes.", {"type": "object"}, note)],
        ask_for_press=house.place.ask_for_press,
        is_present=lambda user_id: any(person.id == user_id for person in house.place.members()),
    )
    house.toolbox = lambda *_: toolbox
    house.new_responder = lambda: ModelResponder(model, max_output_tokens=77)
    return noted


async def test_a_press_is_done_told_aloud_and_recorded(tmp_path: Path) -> None:
    """Whatever anybody says meanwhile does nothing."""
    async with a_house(tmp_path) as house:
        model = Thinker((asks("milk"),), ("Hm.", END), ("It is note one.", END))
        noted = furnish(house, model)
        async with living(house):
            await house.say(ADA.id, "Roomtone, write milk down.")
            assert (await house.reply(1)).text == PRESS_FIRST
            (call,) = house.place.calls
            assert call.request.arguments == {"text": "milk"}
            await house.say(ADA.id, "Yes, Roomtone, do it, I confirm!")
            await house.reply(2)
            assert call.press(BO) is not None
            assert noted == []
            assert call.press(ADA) is None
            await settle(lambda: call.outcome is not None)
            await house.pass_time(1.0)
            assert (await house.reply(3)).text == "It is note one."
            read = [each.content for each in model.asked[-1][0] if each.role is ChatRole.TOOL]
            assert "Note 1 says milk." in read[-1]
            assert noted == ["milk"]
            assert "Roomtone: It is note one." in house.said


async def test_what_was_asked_in_writing_is_told_there(tmp_path: Path) -> None:
    """That it waits, and what came of it: nothing is said aloud. A silent bot writes nothing either."""
    async with a_house(tmp_path) as house:
        model = Thinker((asks("milk"),), ("It is note one.", END), (asks("tea"),))
        noted = furnish(house, model)
        async with living(house) as (room, _):
            await silenceable(house)
            message = Message("Write milk down.")
            assert await room.take_typed(message) is None
            await settle(lambda: message.answers == [PRESS_FIRST])
            assert house.place.calls[0].press(ADA) is None
            await settle(lambda: len(message.answers) == 2)
            assert message.answers[1] == "It is note one."
            assert any(TYPED in each.content for each in model.asked[-1][0])
            await settle(lambda: "Roomtone: It is note one." in house.said)
            assert await room.take_typed(message) is None
            await settle(lambda: len(message.answers) == 3)
            await house.participation.silence_for_now(house.place.guild_id, by=BO.id)
            assert house.place.calls[1].press(ADA) is None
            await settle(lambda: house.place.calls[1].outcome is not None)
            await house.pass_time(1.0)
            assert noted == ["milk", "tea"]
            assert message.answers[1:] == ["It is note one.", PRESS_FIRST]
            assert house.voice.spoken == []


async def test_a_bot_that_leaves_lets_calls_lapse(tmp_path: Path) -> None:
    """The message says so, and a press does nothing any more."""
    async with a_house(tmp_path) as house:
        noted = furnish(house, Thinker((asks("milk"),)))
        async with living(house) as (room, task):
            await house.say(ADA.id, "Roomtone, write milk down.")
            await house.reply(1)
            room.close("left")
            await settle(task.done)
        (call,) = house.place.calls
        assert "Not done" in str(call.outcome)
        assert call.press(ADA) is not None
        assert noted == []
