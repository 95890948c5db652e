"""Replies by a language model: its words, tool calls with their results, and the filler sentence for slow tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import cast

import pytest

from bot.brain.context import ModelContext
from bot.brain.responder import FILLER_AFTER_S, GOES_ON, PRESS_FIRST, CutOffError, ModelOrMemory, ModelResponder
from bot.brain.system_prompt import AFTER_TOOL_RESULTS, ANSWER_WITHOUT_TOOLS
from bot.brain.tools.frozen_calls import RUNS, WAITS
from bot.brain.tools.tool import Asker, RoomTool
from bot.brain.tools.toolbox import Toolbox
from bot.channel.port import TypedMessage
from bot.llm.port import ChatMessage, ChatModelError, ChatRole, FinishReason, StreamEnd, StreamItem
from compaction.payload import MessageToolCall
from tests.bot.brain.thinker import CONTEXT, Thinker
from tests.bot.brain.tools.calls import for_all, kept_messages
from tests.fakes.brain import ScriptedResponder
from tests.fakes.room_channel import FakeRoomChannel

LOOK = MessageToolCall("c-1", "look", '{"at": "map"}')
AGAIN = MessageToolCall("c-2", "look", '{"at": "sea"}')
POST = MessageToolCall("c-3", "post", "{}")
END = StreamEnd(FinishReason.STOP)


def asks(*calls: MessageToolCall) -> StreamEnd:
    """Return the end of an answer that calls tools."""
    return StreamEnd(FinishReason.TOOL_CALLS, calls)


class Looking:
    """A room with a tool that looks at once, and one that asks first. The first waits until `slow` is set, if any."""

    def __init__(self) -> None:
        self.slow: asyncio.Event | None = None
        self.channel = FakeRoomChannel()
        look = RoomTool("look", "Looks.", {"type": "object"}, for_all(self._look), asks=False)
        post = replace(look, name="post", asks=True)
        self.toolbox = Toolbox([look, post], ask_for_press=self.channel.ask_for_press)

    async def _look(self, arguments: Mapping[str, object]) -> str:
        if self.slow is not None:
            await self.slow.wait()
        return f"the {arguments['at']}"

    @property
    def context(self) -> ModelContext:
        """The context of a question that Ada asks in this room."""
        tools = self.toolbox.for_asker(Asker(1, "Ada", present=True))
        return replace(CONTEXT, tools=tools, language="en", channel_language="de")


async def answer(model: Thinker, context: ModelContext, *, filler_after_s: float = FILLER_AFTER_S) -> list[str]:
    """Return the pieces of the answer."""
    responder = ModelResponder(model, max_output_tokens=77, filler_after_s=filler_after_s)
    return [piece async for piece in responder.respond(context)]


async def test_a_tool_is_called_and_its_output_read() -> None:
    """The second request contains the tool calls with their results, and its words are the answer."""
    model, room = Thinker((asks(LOOK, AGAIN),), ("A map ", "and the sea.", END)), Looking()
    assert await answer(model, room.context) == ["A map ", "and the sea."]
    (first, offered), (second, _) = model.asked
    assert [offer.name for offer in offered.offers] == ["look", "post"]
    assert (list(first), model.most_tokens) == (list(CONTEXT.messages), 77)
    *found, told = second[1:]
    assert told == ChatMessage(ChatRole.SYSTEM, AFTER_TOOL_RESULTS)
    assert found == [
        ChatMessage(ChatRole.ASSISTANT, "", tool_calls=(LOOK, AGAIN)),
        ChatMessage(ChatRole.TOOL, '<data from="look">\nthe map\n</data>', tool_call_id="c-1", name="look"),
        ChatMessage(ChatRole.TOOL, '<data from="look">\nthe sea\n</data>', tool_call_id="c-2", name="look"),
    ]
    assert kept_messages(room.toolbox, CONTEXT.current.seq) == found


async def test_words_before_a_call_are_said_at_once() -> None:
    """Words before a tool call are passed on at once."""
    model = Thinker(("Hm, ", "one moment.", asks(LOOK)), ("A map.", END))
    assert "".join(await answer(model, Looking().context)) == "Hm, one moment.\nA map."


@pytest.fixture
def room() -> Looking:
    """A room with a tool that looks."""
    return Looking()


@pytest.mark.parametrize("language", ["en", ""])
async def test_a_call_that_waits_is_told_in_a_fixed_sentence(room: Looking, language: str) -> None:
    """The model is not asked again for it. The sentence is in the language of the question, or that of the channel."""
    model = Thinker(("Well.", asks(POST)))
    waits = PRESS_FIRST if language else "Das mache ich, sobald du im Chat meines Sprachkanals auf „Mach es“ drückst."
    said = await answer(model, replace(room.context, language=language))
    assert said == ["Well.", "\n", f"{waits}\n"]
    assert len(model.asked) == len(room.channel.calls) == 1
    kept = kept_messages(room.toolbox, CONTEXT.current.seq)
    assert [message.content for message in kept] == ["Well.", WAITS]
    room.toolbox.words.take_back(turns=True)


async def test_a_call_that_goes_on_behind_the_talk_is_told_in_a_fixed_sentence(room: Looking) -> None:
    """The model is not asked again before there is a result. The question has one of them for both calls."""
    room.slow = asyncio.Event()
    look = replace(room.toolbox.tools()[0], slow=True)
    room.toolbox = Toolbox([look], ask_for_press=room.channel.ask_for_press, reply_waits_s=0.001)
    model = Thinker((asks(LOOK, AGAIN),))
    assert await answer(model, room.context) == [f"{GOES_ON}\n"]
    kept = kept_messages(room.toolbox, CONTEXT.current.seq)
    assert [message.content for message in kept] == ["", RUNS, RUNS]
    await room.toolbox.frozen.aclose()


async def test_what_was_read_beside_a_call_that_waits_is_answered(room: Looking) -> None:
    """The model reads both results, and goes on."""
    model = Thinker((asks(LOOK, POST),), ("A map.", END))
    assert await answer(model, room.context) == [f"{PRESS_FIRST}\n", "A map."]
    *_, looked, waits, _ = model.asked[-1][0]
    assert "the map" in looked.content
    assert waits.content == WAITS
    room.toolbox.words.take_back(turns=True)


async def test_steps_are_bounded() -> None:
    """After two steps the model must answer in words. If it calls a tool again, the answer fails."""
    model = Thinker((asks(LOOK),), (asks(LOOK),), ("A map.", END))
    assert await answer(model, Looking().context) == ["A map."]
    assert [tools.callable_now for _, tools in model.asked] == [True, True, False]
    # The last message says so too, because not every server respects that no tool may be called.
    told = [messages[-1].content for messages, _ in model.asked]
    assert told == [CONTEXT.messages[-1].content, AFTER_TOOL_RESULTS, ANSWER_WITHOUT_TOOLS]
    stubborn = Thinker((asks(LOOK),))
    with pytest.raises(ChatModelError, match="over and over"):
        await answer(stubborn, Looking().context)
    assert len(stubborn.asked) == 3
    talker = Thinker(("Hm. ", asks(LOOK)))
    assert "".join(await answer(talker, Looking().context)) == "Hm. \nHm. \nHm. "


async def test_a_slow_tool_is_told_once(room: Looking) -> None:
    """The filler sentence for a slow tool is spoken once, and only if nothing was said yet."""
    room.slow = asyncio.Event()
    model = Thinker((asks(LOOK),), (asks(AGAIN),), ("A map.", END))
    responder = ModelResponder(model, max_output_tokens=9, filler_after_s=0.001)
    stream = responder.respond(room.context)
    assert await anext(stream) == "Let me look.\n"
    room.slow.set()
    assert [piece async for piece in stream] == ["A map."]
    room.slow.clear()
    talking = Thinker(("One moment.", asks(LOOK)), ("A map.", END))
    stream = ModelResponder(talking, max_output_tokens=9, filler_after_s=0.001).respond(room.context)
    assert [await anext(stream), await anext(stream)] == ["One moment.", "\n"]
    asyncio.get_running_loop().call_later(0.02, room.slow.set)
    assert [piece async for piece in stream] == ["A map."]


@pytest.mark.parametrize(
    ("language", "said"),
    [("de", "Ich schaue nach.\n"), ("", "Ich schaue nach.\n"), ("fr", "Let me look.\n")],
)
async def test_the_filler_is_in_the_language_of_the_question(room: Looking, language: str, said: str) -> None:
    """Where that is not known, the channel's."""
    room.slow = asyncio.Event()
    responder = ModelResponder(Thinker((asks(LOOK),)), max_output_tokens=9, filler_after_s=0.001)
    stream = responder.respond(replace(room.context, language=language))
    assert await anext(stream) == said
    await stream.aclose()


@pytest.mark.parametrize("typed", [False, True])
async def test_a_slow_tool_is_waited_for_in_silence_where_nobody_listens_for_it(room: Looking, typed: bool) -> None:
    """Nothing may follow where the model may skip, and who has typed reads the answer as a whole."""
    room.slow = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, room.slow.set)
    model = Thinker((asks(LOOK),), ("A map.", END))
    ada = Asker(1, "Ada", present=True, typed=cast("TypedMessage", object()) if typed else None)
    context = replace(CONTEXT, tools=room.toolbox.for_asker(ada), may_skip=not typed)
    assert await answer(model, context, filler_after_s=0.001) == ["A map."]


@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.FILTERED])
async def test_an_answer_that_was_cut_off_says_so(reason: FinishReason) -> None:
    """If the model was cut off, the stream ends with `CutOffError`."""
    stream = ModelResponder(Thinker(("Bo brings it. And Cy", StreamEnd(reason))), max_output_tokens=9).respond(CONTEXT)
    assert await anext(stream) == "Bo brings it. And Cy"
    with pytest.raises(CutOffError, match=reason.value):
        await anext(stream)


async def test_memory_does_not_answer_after_a_tool_has_run() -> None:
    """It knows nothing of what the tool did, and people would order it again."""
    away, room = ChatModelError("It is away.", retryable=True), Looking()
    problems: list[ChatModelError] = []

    def answering(*scripts: tuple[StreamItem | ChatModelError, ...]) -> AsyncGenerator[str, None]:
        model = ModelResponder(Thinker(*scripts), max_output_tokens=77)
        return ModelOrMemory(model, lambda _: ScriptedResponder("from memory")).respond(
            replace(room.context, on_away=problems.append)
        )

    assert [piece async for piece in answering((away,))] == ["from memory"]
    with pytest.raises(ChatModelError, match="away"):
        await anext(answering((asks(LOOK),), (away,)))
    assert problems == [away]
