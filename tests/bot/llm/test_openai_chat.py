"""The chat adapter through the real client against a local server: streamed and whole answers, and failures."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from bot.background_task import background_task
from bot.brain.tools.toolbox import ToolExchange
from bot.llm.openai_chat import EVENTS_AT_ONCE, OpenAIChat
from bot.llm.port import (
    NO_TOOLS,
    ChatMessage,
    ChatModelError,
    ChatRole,
    EndpointItem,
    FinishReason,
    OfferedTools,
    StreamEnd,
    StreamItem,
    Usage,
)
from bot.llm.settings import USUAL_LIMITS, AnswerLimits, LlmSettings
from bot.llm.streamed_answer import ChunkContent
from compaction.errors import CompletionError
from compaction.ports import CompletionRequest
from rehearsal.servers import chat as servers_chat
from rehearsal.servers import chat_wire
from rehearsal.servers.chat import (
    ChatBehaviour,
    ChatCall,
    ChatMode,
    LocalChatServer,
    ScriptedToolCall,
    ToolCallAnswer,
    ToolCallFormat,
)
from rehearsal.servers.loopback import error_response
from tests.bot.llm.offers import LOOK
from tests.fakes.loop_time import pass_loop_time
from tests.patience import PATIENCE_S

WORDS = "Bo brings the lantern. Cy is afraid of spiders."
QUESTION = (ChatMessage(ChatRole.SYSTEM, "You are in a room."), ChatMessage(ChatRole.USER, "Who brings the lantern?"))
REQUEST = CompletionRequest(system="Summarise.", prompt="Ada: hello.", max_output_tokens=200)

ASKING = ToolCallAnswer(
    (ScriptedToolCall("memory_search", {"query": "lantern"}), ScriptedToolCall("recall_turns", {"from": 1, "to": 2})),
    "Hm. ",
)


@asynccontextmanager
async def endpoint(
    mode: ChatMode = ChatMode.ANSWER, *, limits: AnswerLimits = USUAL_LIMITS, **settings: object
) -> AsyncIterator[tuple[OpenAIChat, LocalChatServer]]:
    """Start a server in `mode` and an adapter that uses it."""
    behaviour = ChatBehaviour(answer=lambda call: WORDS, mode=mode)
    async with LocalChatServer(behaviour) as server:
        values = {"base_url": server.base_url, "model": "local-chat", "api_key": SecretStr("sk-secret"), **settings}
        async with OpenAIChat(LlmSettings.model_validate(values), limits) as chat:
            yield chat, server


async def heard(chat: OpenAIChat) -> list[str]:
    """Return the pieces of text of one streamed answer."""
    return [piece for piece in await streamed(chat) if isinstance(piece, str)]


async def streamed(chat: OpenAIChat, tools: OfferedTools = NO_TOOLS) -> list[StreamItem]:
    """Return all items of one streamed answer, without what it has cost."""
    stream = chat.stream(QUESTION, max_output_tokens=50, tools=tools)
    return [piece async for piece in stream if not isinstance(piece, Usage)]


async def told_costs(chat: OpenAIChat) -> list[EndpointItem]:
    """Return what one streamed answer says that it has cost."""
    return [piece async for piece in chat.stream(QUESTION, max_output_tokens=50) if isinstance(piece, Usage)]


async def test_streams_the_answer_in_pieces() -> None:
    """The answer comes in several non-empty pieces, and the request contains the messages, the model and the output
    limit.
    """
    async with endpoint() as (chat, server):
        pieces = await heard(chat)
        assert "".join(pieces) == WORDS
        assert len(pieces) > 2
        assert all(pieces)
        body = server.calls[0].body
        assert body["messages"] == [{"role": m.role.value, "content": m.content} for m in QUESTION]
        assert (body["model"], body["max_tokens"], body["stream"]) == ("local-chat", 50, True)


async def test_an_answer_that_does_not_end_is_cut_off() -> None:
    """A server that minds no output limit does not have the bot speak for ever."""
    async with endpoint() as (chat, server):
        server.behaviour.answer = lambda call: "And then? " * 1_000
        pieces = await streamed(chat)
        answer = await chat.complete(REQUEST)
    assert "".join(each for each in pieces if isinstance(each, str)) == "And then? " * 80
    assert pieces[-1] == StreamEnd(FinishReason.LENGTH)
    assert (answer.text, answer.finish_reason) == ("And then? " * 320, FinishReason.LENGTH)


FAILURES = [
    (ChatMode.WRONG_KEY, False, False, "llm.api_key"),
    (ChatMode.UNKNOWN_MODEL, False, False, "llm.model"),
    (ChatMode.RATE_LIMITED, True, False, "rate limit"),
    (ChatMode.BROKEN, True, False, "status 500"),
    (ChatMode.STALL, True, True, "in time"),
    (ChatMode.GARBAGE, True, False, "llm.base_url"),
]


@pytest.mark.parametrize(
    ("mode", "retryable", "too_slow", "remedy"),
    [
        *FAILURES,
        (ChatMode.GARBAGE_STREAM, True, False, "llm.base_url"),
        (ChatMode.STALL_AFTER_FIRST, True, True, "in time"),
        (ChatMode.CUT, True, False, "broke"),
        (ChatMode.ERROR_IN_STREAM, True, False, "engine"),
        (ChatMode.EMPTY, True, False, "empty answer"),
    ],
)
async def test_stream_failures_are_plain_sentences(
    mode: ChatMode, retryable: bool, too_slow: bool, remedy: str
) -> None:
    """Each failure becomes one sentence with a remedy and without the key, and says whether retrying helps."""
    # Only the servers that stall get a short time limit, so that a busy machine does not fail the other cases.
    limit_s = 0.3 if too_slow else 120.0
    async with endpoint(mode, limits=AnswerLimits(limit_s, limit_s + 0.1)) as (chat, _):
        with pytest.raises(ChatModelError, match=remedy) as caught:
            await heard(chat)
    assert (caught.value.retryable, caught.value.timeout) == (retryable, too_slow)
    assert "sk-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_long_answer_is_waited_for_as_long_as_it_is_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that the voice needs for each piece does not count towards the time limit of the answer."""
    async with endpoint(limits=AnswerLimits(first_token_s=120.0)) as (chat, _):
        said = ""
        async for piece in chat.stream(QUESTION, max_output_tokens=50):
            if isinstance(piece, str):
                said += piece
                pass_loop_time(monkeypatch, 61.0)
    assert said == WORDS


async def test_a_model_that_thinks_is_told_to_think_little() -> None:
    """A model that thinks for as long as it may has no words left for the room. Its least effort is learnt in the same
    answer, and used for summaries too.
    """
    async with endpoint() as (chat, server):
        server.behaviour.efforts = ("low", "medium")
        assert "".join(await heard(chat)) == WORDS
        assert (await chat.complete(REQUEST)).text == WORDS
        assert [call.body.get("reasoning_effort") for call in server.calls] == [None, "none", "minimal", "low", "low"]


async def test_of_the_first_calls_at_once_none_fails() -> None:
    """What the refusal of one teaches repeats the others too, which were sent before."""
    async with endpoint() as (chat, server):
        server.behaviour.takes_stream_options = False
        for words in await asyncio.gather(*(heard(chat) for _ in range(4))):
            assert "".join(words) == WORDS


async def test_a_stream_tells_its_cost_at_its_end() -> None:
    """A stream reports its token usage. An endpoint that refuses `stream_options` does not get that option again."""
    async with endpoint() as (chat, server):
        server.behaviour.prompt_tokens = 42
        assert await told_costs(chat) == [Usage(42, len(WORDS.split()))]
        server.behaviour.takes_stream_options = False
        for _ in range(2):
            assert await told_costs(chat) == []
        assert ["stream_options" in call.body for call in server.calls] == [True, True, False, False]


@pytest.mark.parametrize("count", ["many", [7], -1, 10**400, True, 1.5], ids=lambda count: str(count)[:8])
async def test_a_cost_that_is_no_number_of_tokens_is_not_told(count: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer counts all the same; the budget and the metrics take whole numbers only."""
    monkeypatch.setattr(chat_wire, "usage_of", lambda *_, **__: {"prompt_tokens": count})
    async with endpoint() as (chat, _):
        assert await told_costs(chat) == [Usage(None, None)]
        pieces = await heard(chat)
        answer = await chat.complete(REQUEST)
    assert "".join(pieces) == WORDS
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == (WORDS, None, None)


async def test_others_have_their_turn_while_a_server_sends_much_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of events take a good while to read, in which no sound would be received or sent."""
    turns = 0
    read_in: Counter[int] = Counter()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def read(chunk: object) -> ChunkContent:
        read_in[turns] += 1
        return ChunkContent("word " if read_in.total() == 1 else "")

    monkeypatch.setattr("bot.llm.openai_chat.read_chunk", read)
    monkeypatch.setattr(chat_wire, "pieces", lambda _: [""] * 600)
    async with endpoint() as (chat, _), background_task(others(), name="others"):
        await heard(chat)
    assert read_in.total() > 600
    assert max(read_in.values()) <= EVENTS_AT_ONCE


@pytest.mark.parametrize(
    "style", [ToolCallFormat.OPENAI, ToolCallFormat.REPEATING, ToolCallFormat.WHOLE, ToolCallFormat.BARE]
)
async def test_calls_of_tools_come_whole(style: ToolCallFormat) -> None:
    """Tool calls are complete and have ids, however the server splits them. The request contains the offered tools."""
    async with endpoint() as (chat, server):
        server.behaviour.answer, server.behaviour.call_style = lambda call: ASKING, style
        *words, ended = await streamed(chat, LOOK)
        assert "".join(map(str, words)) == "Hm. "
        assert isinstance(ended, StreamEnd)
        assert ended.reason is FinishReason.TOOL_CALLS
        assert [(call.name, json.loads(call.arguments)) for call in ended.calls] == [
            ("memory_search", {"query": "lantern"}),
            ("recall_turns", {"from": 1, "to": 2}),
        ]
        assert len({call.id for call in ended.calls}) == 2
        assert all(call.id for call in ended.calls)
        body = server.calls[0].body
        assert body["tools"] == [
            {
                "type": "function",
                "function": {
                    "name": "memory_search",
                    "description": "Finds what was said.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ]
        assert body["tool_choice"] == "auto"
        await streamed(chat, OfferedTools(LOOK.offers, callable_now=False))
        assert server.calls[1].body["tool_choice"] == "none"


async def test_half_a_character_of_an_answer_can_be_sent_back() -> None:
    """Some servers cut an emoji in two. No request can have half of one, so all would fail with it in the prompt."""
    half = "\ud83d"
    asking = ToolCallAnswer((ScriptedToolCall(f"look{half}", {"at": "map"}),), f"Hm {half} ")
    async with endpoint() as (chat, server):
        server.behaviour.answer = lambda _: asking
        *pieces, end = await streamed(chat, LOOK)
        assert isinstance(end, StreamEnd)
        text = "".join(piece for piece in pieces if isinstance(piece, str))
        exchange = ToolExchange(end.calls, ("A map.",), text)
        server.behaviour.answer = lambda _: WORDS
        stream = chat.stream((*QUESTION, *exchange.messages()), max_output_tokens=50)
        assert "".join([piece async for piece in stream if isinstance(piece, str)]) == WORDS
        server.behaviour.answer = lambda _: half
        assert (await chat.complete(REQUEST)).text == "\N{REPLACEMENT CHARACTER}"


async def test_a_call_that_was_cut_off_is_none() -> None:
    """A tool call that was cut off is dropped, and the stream's finish reason is LENGTH."""
    async with endpoint(ChatMode.LENGTH) as (chat, server):
        server.behaviour.answer = lambda call: ASKING
        assert (await streamed(chat, LOOK))[-1] == StreamEnd(FinishReason.LENGTH)
        server.behaviour.answer = lambda call: WORDS
        assert (await streamed(chat, LOOK))[-1] == StreamEnd(FinishReason.LENGTH)
        server.behaviour.mode = ChatMode.ANSWER
        assert (await streamed(chat, LOOK))[-1] == StreamEnd(FinishReason.STOP)


@pytest.mark.parametrize("text", ["<think>Who brings the lantern? Perhaps", ""])
async def test_an_answer_of_thoughts_alone_is_a_failure(text: str) -> None:
    """A model that has thought until its limit has no words. It is asked again once, to think less, and keeps its
    tools.
    """
    async with endpoint(ChatMode.LENGTH) as (chat, server):
        server.behaviour.answer = lambda call: text
        for _ in range(2):
            with pytest.raises(ChatModelError, match="words"):
                await streamed(chat, LOOK)
        assert [call.offered for call in server.calls] == [("memory_search",)] * 3


async def test_thoughts_are_no_words() -> None:
    """Thoughts in tags are left out. Some models are known by their names to begin with them without a tag; one whose
    server takes them out is not waited for any more.
    """
    async with endpoint(model="deepseek-r1") as (chat, server):
        server.behaviour.answer = lambda call: "<think>Who? Bo.</think>" + WORDS
        assert "".join(await heard(chat)) == WORDS
        server.behaviour.answer = lambda call: "Who? Bo.</think>" + WORDS
        assert "".join(await heard(chat)) == WORDS
        server.behaviour.answer = lambda call: WORDS
        assert await heard(chat) == [WORDS]
        assert len(await heard(chat)) > 2


async def test_a_server_that_cannot_read_a_call_is_asked_without_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ollama fails so. It is an accident, and the next question has its tools."""
    monkeypatch.setattr(
        servers_chat,
        "refusal_of",
        lambda _, call: error_response(500, "error parsing tool call") if call.offered else None,
    )
    async with endpoint() as (chat, server):
        for _ in range(2):
            assert "".join(map(str, (await streamed(chat, LOOK))[:-1])) == WORDS
        assert [bool(call.offered) for call in server.calls] == [True, False] * 2


@pytest.mark.parametrize("nothing", ["", "<tools></tools>", '```json\n{"name": "memory_search", "arguments": {}}'])
async def test_tools_never_cost_the_answer(nothing: str) -> None:
    """A model that answers nothing with tools is asked again without them, and so is one that writes a call as text, or
    its tags with nothing between them, as small Qwen models do.
    """
    async with endpoint() as (chat, server):
        server.behaviour.answer = lambda call: nothing if call.offered else WORDS
        assert "".join(map(str, (await streamed(chat, LOOK))[:-1])) == WORDS
        assert [bool(call.offered) for call in server.calls] == [True, False]


async def test_calls_that_are_none_are_garbage() -> None:
    """Tool calls without a name, too many calls or overlong arguments raise an error."""
    for wanted, style in (
        ((ScriptedToolCall("x"),), ToolCallFormat.NAMELESS),
        ((ScriptedToolCall("look"),) * 9, ToolCallFormat.OPENAI),
        ((ScriptedToolCall("look", "x" * 20_001),), ToolCallFormat.OPENAI),
    ):
        async with endpoint() as (chat, server):
            server.behaviour.answer, server.behaviour.call_style = _asking(wanted), style
            with pytest.raises(ChatModelError, match="chat answer"):
                await streamed(chat, LOOK)


def _asking(wanted: tuple[ScriptedToolCall, ...]) -> Callable[[ChatCall], ToolCallAnswer]:
    return lambda call: ToolCallAnswer(wanted)


SCHEMA: dict[str, object] = {"type": "object", "properties": {"gist": {"type": "string"}}, "required": ["gist"]}


@pytest.mark.parametrize(("mode", "retryable", "too_slow", "remedy"), [FAILURES[0], FAILURES[4]])
async def test_completion_failures_are_told_to_the_compactor(
    mode: ChatMode, retryable: bool, too_slow: bool, remedy: str
) -> None:
    """A failed summary raises a CompletionError that says whether retrying helps."""
    async with endpoint(mode, limits=AnswerLimits(completion_s=0.3 if too_slow else PATIENCE_S)) as (chat, _):
        with pytest.raises(CompletionError, match=remedy) as caught:
            await chat.complete(REQUEST)
    assert (caught.value.retryable, caught.value.timeout) == (retryable, too_slow)


async def test_a_whole_answer_tells_its_cost_and_ending() -> None:
    """A completion returns text, finish reason and token counts; the finish reason of a cut-off answer is `length`."""
    async with endpoint() as (chat, server):
        answer = await chat.complete(REQUEST)
        assert (answer.text, answer.finish_reason, answer.prompt_tokens) == (WORDS, "stop", 11)
        server.behaviour.mode = ChatMode.LENGTH
        assert (await chat.complete(REQUEST)).finish_reason == "length"


@pytest.mark.parametrize(("taken", "tries"), [({"json_schema"}, 1), ({"json_object_schema"}, 2), (set[str](), 3)])
async def test_structured_output_falls_back_to_what_the_endpoint_takes(taken: set[str], tries: int) -> None:
    """If the endpoint refuses one form of structured output, the next is tried. What works is used from then on."""
    request = CompletionRequest(system="s", prompt="p", max_output_tokens=9, schema=SCHEMA)
    async with endpoint() as (chat, server):
        server.behaviour.answer = lambda call: json.dumps({"gist": "x"})
        server.behaviour.formats = frozenset(taken)
        assert json.loads((await chat.complete(request)).text) == {"gist": "x"}
        assert len(server.calls) == tries
        await chat.complete(request)
        assert len(server.calls) == tries + 1


async def test_a_summary_that_ends_within_the_thoughts_is_asked_for_again() -> None:
    """The model is told to think less, as one whose thoughts the server leaves out."""
    async with endpoint(ChatMode.LENGTH) as (chat, server):
        server.behaviour.answer = lambda call: WORDS if "reasoning_effort" in call.body else "<think>Who? Perhaps"
        assert (await chat.complete(REQUEST)).text == WORDS


@pytest.mark.parametrize("content", [["Bo"], {"text": "Bo"}, 7], ids=["list", "object", "number"])
async def test_a_whole_answer_that_is_no_text_is_none(content: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = chat_wire.complete
    monkeypatch.setattr(chat_wire, "complete", lambda model, _, usage: complete(model, content, usage))
    monkeypatch.setattr(chat_wire, "usage_of", lambda *_, **__: {})
    async with endpoint() as (chat, _):
        with pytest.raises(CompletionError, match="chat answer"):
            await chat.complete(REQUEST)
