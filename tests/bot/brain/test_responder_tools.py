"""Replies with tool calls: steps, results with their calls, and the filler sentence for slow tools."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bot.brain.responder import CutOffError, ModelResponder
from bot.brain.system_prompt import AFTER_TOOL_RESULTS, ANSWER_WITHOUT_TOOLS
from bot.brain.tools.permission import Asker
from bot.brain.tools.settings import ToolsSettings
from bot.brain.tools.tool import RoomTool
from bot.brain.tools.toolbox import STILL_RUNNING, Toolbox
from bot.llm.port import NO_TOOLS, ChatMessage, ChatModelError, ChatRole, FinishReason, OfferedTools, StreamEnd
from compaction.model import TurnPart
from compaction.payload import MessageToolCall
from tests.bot.brain.test_responder import CONTEXT
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from bot.brain.context import ModelContext
    from bot.llm.port import StreamItem

LOOK = MessageToolCall("c-1", "look", '{"at": "map"}')
AGAIN = MessageToolCall("c-2", "look", '{"at": "sea"}')
END = StreamEnd(FinishReason.STOP)


def asks(*calls: MessageToolCall) -> StreamEnd:
    """Return the end of an answer that calls tools."""
    return StreamEnd(FinishReason.TOOL_CALLS, calls)


class Thinker:
    """A model that streams one script for each call and keeps what it was asked."""

    model = "thinker"

    def __init__(self, *scripts: tuple[StreamItem, ...]) -> None:
        self._scripts = list(scripts)
        self.asked: list[tuple[Sequence[ChatMessage], OfferedTools]] = []

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
        on_sent: Callable[[Sequence[ChatMessage]], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the next script; the last one is repeated."""
        self.asked.append((messages, tools))
        for piece in self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]:
            yield piece


class Looking:
    """A room with one tool. The tool waits until `slow` is set, if there is a `slow`."""

    def __init__(self) -> None:
        self.slow: asyncio.Event | None = None
        self.looked = 0
        tool = RoomTool("look", "Looks.", {"type": "object"}, self._look)
        self.toolbox = Toolbox([tool])

    async def _look(self, arguments: Mapping[str, object]) -> str:
        self.looked += 1
        if self.slow is not None:
            await self.slow.wait()
        return f"the {arguments['at']}"

    @property
    def context(self) -> ModelContext:
        """The context of a question that Ada asks in this room."""
        return replace(CONTEXT, tools=self.toolbox.for_asker(Asker(1, "Ada", "Look!", present=True)))


async def answer(model: Thinker, context: ModelContext, **settings: object) -> list[str]:
    """Return the pieces of the answer."""
    responder = ModelResponder(model, max_output_tokens=77, tools=ToolsSettings.model_validate(settings))
    return [piece async for piece in responder.respond(context)]


@pytest.mark.asyncio
async def test_a_tool_is_called_and_its_output_read() -> None:
    """The second request contains the tool calls with their results, and its words are the answer."""
    model, room = Thinker((asks(LOOK, AGAIN),), ("A map ", "and the sea.", END)), Looking()
    assert await answer(model, room.context) == ["A map ", "and the sea."]
    (first, offered), (second, _) = model.asked
    assert [offer.name for offer in offered.offers] == ["look"]
    assert list(first) == list(CONTEXT.messages)
    *found, told = second[1:]
    assert told == ChatMessage(ChatRole.SYSTEM, AFTER_TOOL_RESULTS)
    assert found == [
        ChatMessage(ChatRole.ASSISTANT, "", tool_calls=(LOOK, AGAIN)),
        ChatMessage(ChatRole.TOOL, '<data from="look">\nthe map\n</data>', tool_call_id="c-1", name="look"),
        ChatMessage(ChatRole.TOOL, '<data from="look">\nthe sea\n</data>', tool_call_id="c-2", name="look"),
    ]
    kept = room.toolbox.exchanges.messages({CONTEXT.current.seq})
    assert kept[CONTEXT.current.seq] == found


@pytest.mark.asyncio
async def test_words_before_a_call_are_said_at_once() -> None:
    """Words before a tool call are passed on at once, and the heading is removed from each step."""
    model = Thinker(("[21:05] Roomtone: ", "Hm, one moment.", asks(LOOK)), ("[21:05] Roomtone: A map.", END))
    assert "".join(await answer(model, Looking().context)) == "Hm, one moment.\nA map."


@pytest.mark.asyncio
async def test_a_question_before_an_effect_ends_the_reply() -> None:
    """The question is spoken word for word instead of another answer of the model; the yes to it is carried out before
    the model is asked again, and the model reads the result.
    """
    room = Looking()
    (look,) = room.toolbox.tools()
    toolbox = Toolbox([replace(look, side_effects=True, words=("look", "map"))])
    ada = Asker(1, "Ada", "You can look.", present=True, spoke_at=1.0)
    model = Thinker(("Well.", asks(LOOK)), ("I looked.", END))
    question = "With at map, shall I run look?"
    assert await answer(model, replace(CONTEXT, tools=toolbox.for_asker(ada))) == ["Well.", "\n", question]
    toolbox.proposals.on_reply(f"Well. {question}", ended_at=2.0)
    yes = toolbox.for_asker(replace(ada, words="Yes.", spoke_at=3.0))
    assert await answer(model, replace(CONTEXT, tools=yes)) == ["I looked."]
    *_, called, result, told = model.asked[-1][0]
    assert called.tool_calls == (LOOK,), "as the model made it: Gemini wants its signature, Mistral ids of its own kind"
    assert result.content == '<data from="look">\nthe map\n</data>'
    assert told.content == AFTER_TOOL_RESULTS


@pytest.mark.asyncio
async def test_a_call_that_is_asked_about_stands_in_later_prompts_once() -> None:
    """Anthropic takes the id of a call once in a prompt. What was done in the same step stays."""
    room = Looking()
    (look,) = room.toolbox.tools()
    toolbox = Toolbox([look, replace(look, name="post", side_effects=True, words=("post", "map"))])
    ada = Asker(1, "Ada", "You can post it.", present=True, spoke_at=1.0)
    post = replace(AGAIN, name="post")
    await answer(Thinker((asks(LOOK, post),)), replace(CONTEXT, tools=toolbox.for_asker(ada)))
    kept = toolbox.exchanges.messages({CONTEXT.current.seq})[CONTEXT.current.seq]
    assert [(message.tool_calls, message.tool_call_id) for message in kept] == [((LOOK,), None), ((), LOOK.id)]
    await answer(Thinker((asks(post),)), replace(CONTEXT, tools=toolbox.for_asker(ada)))
    assert toolbox.exchanges.messages({CONTEXT.current.seq})[CONTEXT.current.seq] == kept


@pytest.mark.asyncio
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
    assert "".join(await answer(talker, Looking().context, max_steps=1)) == "Hm. \nHm. "


@pytest.mark.asyncio
async def test_a_slow_tool_is_told_once() -> None:
    """The filler sentence for a slow tool is spoken once, and only if nothing was said yet."""
    room = Looking()
    room.slow = asyncio.Event()
    model = Thinker((asks(LOOK),), (asks(AGAIN),), ("A map.", END))
    responder = ModelResponder(model, max_output_tokens=9, tools=ToolsSettings(filler_after_s=0.001))
    stream = responder.respond(room.context)
    assert await anext(stream) == "Let me look.\n"
    room.slow.set()
    assert [piece async for piece in stream] == ["A map."]
    room.slow.clear()
    talking = Thinker(("One moment.", asks(LOOK)), ("A map.", END))
    stream = ModelResponder(talking, max_output_tokens=9, tools=ToolsSettings(filler_after_s=0.001)).respond(
        room.context
    )
    assert [await anext(stream), await anext(stream)] == ["One moment.", "\n"]
    asyncio.get_running_loop().call_later(0.02, room.slow.set)
    assert [piece async for piece in stream] == ["A map."]


@pytest.mark.asyncio
@pytest.mark.parametrize("may_skip", [False, True])
async def test_what_was_agreed_to_is_told_if_it_is_slow(may_skip: bool) -> None:
    """Whoever said yes hears that it is being done. A yes without the bot's name is one too, so an answer will follow.
    Other words than a yes bring no filler.
    """
    room = Looking()
    room.slow = asyncio.Event()
    (look,) = room.toolbox.tools()
    toolbox = Toolbox([replace(look, side_effects=True, words=("look", "map"))])
    ada = Asker(1, "Ada", "You can look.", present=True, spoke_at=1.0)
    model = Thinker(("I looked.", END))
    responder = ModelResponder(model, max_output_tokens=9, tools=ToolsSettings(filler_after_s=0.001))
    for words, said in (("Yes.", ["Let me look.\n", "I looked."]), ("Yes, but who is Bo?", ["I looked."])):
        model._scripts.insert(0, (asks(LOOK),))
        asking = [piece async for piece in responder.respond(replace(CONTEXT, tools=toolbox.for_asker(ada)))]
        toolbox.proposals.on_reply("".join(asking), ended_at=2.0)
        answering = toolbox.for_asker(replace(ada, words=words, spoke_at=3.0))
        stream = responder.respond(replace(CONTEXT, tools=answering, may_skip=may_skip))
        heard = [await anext(stream)]
        room.slow.set()
        assert heard + [piece async for piece in stream] == said
        room.slow.clear()
    assert room.looked == 1


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("asked", "language", "filler", "said"),
    [
        ("Was steht auf der Karte?", "", "Let me look.", "Ich schaue nach.\n"),
        ("Was steht auf der Karte?", "", "One second.", "One second.\n"),
        ("What is on the map?", "", "Let me look.", "Let me look.\n"),
        ("Quel est le nom du lac ?", "fr", "Let me look.", "Let me look.\n"),
        ("Uhrzeit, Roomtone?", "de", "Let me look.", "Ich schaue nach.\n"),
    ],
)
async def test_who_asks_in_german_is_told_in_german(asked: str, language: str, filler: str, said: str) -> None:
    """The default filler sentence is in the language of the question; the operator's own is said as it is. Where the
    asker's language is not known, the words tell it.
    """
    room = Looking()
    room.slow = asyncio.Event()
    turn = replace(room.context.current, parts=(TurnPart("1", "Ada", asked),))
    settings = ToolsSettings(filler=filler, filler_after_s=0.001)
    responder = ModelResponder(Thinker((asks(LOOK),)), max_output_tokens=9, tools=settings)
    stream = responder.respond(replace(room.context, current=turn, language=language))
    assert await anext(stream) == said
    await stream.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("asked", "said"),
    [("Du kannst die Map ansehen.", "Ich schaue nach.\n"), ("You can look at the map.", "Let me look.\n")],
)
async def test_who_says_yes_is_told_in_the_language_of_the_question(asked: str, said: str) -> None:
    """A 'Ja.' is too short to show it."""
    room = Looking()
    room.slow = asyncio.Event()
    (look,) = room.toolbox.tools()
    toolbox = Toolbox([replace(look, side_effects=True, words=("look", "map"))])
    ada = Asker(1, "Ada", asked, present=True, spoke_at=1.0)
    responder = ModelResponder(
        Thinker((asks(LOOK),), ("", END)), max_output_tokens=9, tools=ToolsSettings(filler_after_s=0.001)
    )
    context = replace(CONTEXT, tools=toolbox.for_asker(ada))
    asking = [piece async for piece in responder.respond(context)]
    toolbox.proposals.on_reply("".join(asking), ended_at=2.0)
    turn = replace(CONTEXT.current, parts=(TurnPart("1", "Ada", "Ja."),))
    answering = toolbox.for_asker(replace(ada, words="Ja.", spoke_at=3.0))
    stream = responder.respond(replace(CONTEXT, current=turn, tools=answering))
    assert await anext(stream) == said
    room.slow.set()
    await stream.aclose()


@pytest.mark.asyncio
async def test_without_a_filler_it_is_silent() -> None:
    """With an empty filler setting, a slow tool is waited for in silence."""
    room = Looking()
    room.slow = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, room.slow.set)
    model = Thinker((asks(LOOK),), ("A map.", END))
    assert await answer(model, room.context, filler="", filler_after_s=0.001) == ["A map."]


@pytest.mark.asyncio
async def test_nothing_is_promised_where_nothing_may_follow() -> None:
    """If the model may still skip, no filler sentence is spoken, however long its tool takes."""
    room = Looking()
    room.slow = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, room.slow.set)
    model = Thinker((asks(LOOK),), ("SKIP", END))
    assert await answer(model, replace(room.context, may_skip=True), filler_after_s=0.001) == ["SKIP"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("settings", "fills"),
    [({"filler_after_s": 30.0}, False), ({"filler": ""}, False), ({"filler_after_s": 0.001}, True)],
)
async def test_an_order_outlives_its_reply(settings: dict[str, object], fills: bool) -> None:
    """Somebody talks over the bot while it does what was ordered, before, during or without the filler: the
    steps so far are recorded, then that it goes on.
    """
    room = Looking()
    toolbox = Toolbox([replace(room.toolbox.tools()[0], name="post", side_effects=True, words=("post", "map"))])
    room.slow = asyncio.Event()
    context = replace(CONTEXT, tools=toolbox.for_asker(Asker(1, "Ada", "Post the map.", present=True)))
    chosen = ToolsSettings.model_validate(settings)
    model = Thinker((asks(replace(LOOK, name="post")),))
    stream = ModelResponder(model, max_output_tokens=9, tools=chosen).respond(context)

    heard: list[str] = []

    async def listen() -> None:
        async with aclosing(stream):
            async for piece in stream:
                heard.append(piece)
                await asyncio.Event().wait()

    reply = asyncio.create_task(listen())
    async with asyncio.timeout(PATIENCE_S):
        while not (room.looked and bool(heard) == fills):  # noqa: ASYNC110 - a tool sets no event
            await asyncio.sleep(0.001)
    reply.cancel()
    await asyncio.wait({reply})
    seq = CONTEXT.current.seq
    assert [message.content for message in toolbox.exchanges.messages({seq})[seq]] == ["", STILL_RUNNING]
    went_on = [toolbox.effects.runs_for(asker_id) for asker_id in (1, 2, None)]
    room.slow.set()
    await toolbox.effects.finish(within_s=PATIENCE_S)
    # Whoever else asks something meanwhile is not told that it goes on.
    assert (went_on, toolbox.effects.runs_for(1)) == ([True, False, False], False)
    await asyncio.sleep(0)
    assert "the map" in toolbox.exchanges.messages({seq})[seq][-1].content


@pytest.mark.asyncio
async def test_without_tools_calls_are_no_calls() -> None:
    """If no tools are offered, a tool call that the model makes up is ignored and its words are the answer."""
    model = Thinker(("Hm.", asks(LOOK)))
    assert await answer(model, CONTEXT) == ["Hm."]
    assert model.asked[0][1] == NO_TOOLS


@pytest.mark.asyncio
@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.FILTERED])
async def test_an_answer_that_was_cut_off_says_so(reason: FinishReason) -> None:
    """If the model was cut off, the stream ends with `CutOffError`."""
    stream = ModelResponder(Thinker(("Bo brings it. And Cy", StreamEnd(reason))), max_output_tokens=9).respond(CONTEXT)
    assert await anext(stream) == "Bo brings it. And Cy"
    with pytest.raises(CutOffError, match=reason.value):
        await anext(stream)
