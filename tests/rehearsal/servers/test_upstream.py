"""A chat server that forwards requests to an endpoint passes requests, answers and disconnects on.

In these tests, a second local chat server is the endpoint.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from bot.llm.openai_chat import OpenAIChat
from bot.llm.port import ChatMessage, ChatRole, OfferedTools, StreamEnd, ToolOffer, Usage
from bot.llm.settings import LlmSettings
from rehearsal.servers.chat import ChatBehaviour, ChatMode, LocalChatServer, ScriptedToolCall, ToolCallAnswer
from rehearsal.servers.loopback import LoopbackServer
from rehearsal.servers.upstream import Upstream
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.llm.port import StreamItem

WORDS = "The key lies under the third flower pot, as Ada said."
TOOL = {"type": "function", "function": {"name": "memory_search", "parameters": {"type": "object"}}}
SCHEMA = {"type": "json_object", "schema": {"type": "object"}}


@asynccontextmanager
async def in_front_of(base_url: str) -> AsyncIterator[LocalChatServer]:
    """Open a chat server that forwards requests to the endpoint at `base_url`."""
    async with Upstream(base_url, "small") as upstream, LocalChatServer(ChatBehaviour(answer=upstream)) as front:
        yield front


@asynccontextmanager
async def two(behaviour: ChatBehaviour) -> AsyncIterator[tuple[LocalChatServer, LocalChatServer]]:
    """Open a chat server that behaves as `behaviour` says, and a second one that forwards requests to it."""
    async with AsyncExitStack() as stack:
        behind = await stack.enter_async_context(LocalChatServer(behaviour))
        yield await stack.enter_async_context(in_front_of(behind.base_url)), behind


def body(**more: object) -> dict[str, object]:
    """Return the body of a chat request."""
    return {"model": "any", "messages": [{"role": "user", "content": "Where is the key?"}], "max_tokens": 50, **more}


async def ask(server: LocalChatServer, **more: object) -> tuple[int, str]:
    """Send a request and return the status and the text of the answer."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.base_url}/chat/completions", json=body(**more)) as response,
    ):
        return response.status, await response.text()


def chunks(text: str) -> list[dict[str, Any]]:
    """Return the chunks of a streamed answer."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def words_of(text: str) -> str:
    """Return the text of a streamed answer."""
    deltas = [choice["delta"] for each in chunks(text) for choice in each["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


@pytest.mark.asyncio
async def test_a_stream_is_handed_on_as_it_comes() -> None:
    """A stream is passed on with its words and token usage, and the endpoint gets the request that the client sent."""
    wanted = {"stream": True, "tools": [TOOL], "tool_choice": "auto", "stream_options": {"include_usage": True}}
    async with two(ChatBehaviour(answer=lambda _: WORDS)) as (front, behind):
        _, direct = await ask(behind, **wanted)
        status, passed_on = await ask(front, **wanted)
        asked, through = (call.body for call in behind.calls)
    assert status == 200
    assert words_of(passed_on) == words_of(direct) == WORDS
    assert chunks(passed_on)[-1]["usage"] == chunks(direct)[-1]["usage"]
    # Only the model's name is replaced, because the endpoint has this one model.
    assert through == {**asked, "model": "small"}


@pytest.mark.asyncio
async def test_calls_of_tools_come_through() -> None:
    """Tool calls are passed on in the same pieces."""
    calling = ToolCallAnswer((ScriptedToolCall("memory_search", {"query": "key"}),))
    async with two(ChatBehaviour(answer=lambda _: calling)) as (front, behind):
        _, direct = await ask(behind, stream=True, tools=[TOOL])
        _, passed_on = await ask(front, stream=True, tools=[TOOL])
    found = [[choice["delta"] for each in chunks(text) for choice in each["choices"]] for text in (passed_on, direct)]
    assert found[0] == found[1]
    assert found[0][0]["tool_calls"][0]["function"]["name"] == "memory_search"


@pytest.mark.asyncio
async def test_a_whole_answer_and_its_format_come_through() -> None:
    """An answer that is not streamed, and its response format, are passed on. Summaries use this."""
    async with two(ChatBehaviour(answer=lambda _: "{}")) as (front, behind):
        status, text = await ask(front, response_format=SCHEMA)
        asked = behind.calls[0].body
    assert (status, json.loads(text)["choices"][0]["message"]["content"]) == (200, "{}")
    assert asked["response_format"] == SCHEMA


@pytest.mark.asyncio
@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_is_the_endpoints_own(stream: bool) -> None:
    """If the endpoint refuses before the answer has begun, its status and message are passed on."""
    async with two(ChatBehaviour(answer=lambda _: WORDS, mode=ChatMode.RATE_LIMITED)) as (front, _):
        status, text = await ask(front, stream=stream)
    assert (status, json.loads(text)["error"]["message"]) == (429, "Rate limit reached.")


@pytest.mark.asyncio
async def test_an_endpoint_that_is_away_is_a_plain_sentence() -> None:
    """If the endpoint cannot be reached, the answer is a clear error with status 502 (bad gateway)."""
    async with LocalChatServer() as gone:
        base_url = gone.base_url
    async with in_front_of(base_url) as front:
        status, text = await ask(front, stream=True)
    assert status == 502
    assert "The language model small cannot be reached" in json.loads(text)["error"]["message"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("mode", "told"),
    [
        (ChatMode.GARBAGE_STREAM, "did not answer with JSON"),
        (ChatMode.CUT, "cannot be reached"),
        (ChatMode.GARBAGE, "stopped in the middle of its answer"),
    ],
)
async def test_what_breaks_in_mid_answer_is_told_in_the_stream(mode: ChatMode, told: str) -> None:
    """A failure in the middle of a stream becomes an error event, and the stream does not end normally."""
    async with two(ChatBehaviour(answer=lambda _: WORDS, mode=mode)) as (front, _):
        status, text = await ask(front, stream=True)
    *_, last = [line for line in text.splitlines() if line]
    assert status == 200
    assert told in json.loads(last.removeprefix("data: "))["error"]["message"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("mode", "status", "holds", "lacks"),
    [
        (ChatMode.BROKEN, 500, "The engine died.", WORDS[:8]),
        (ChatMode.GARBAGE, 200, "It works!", WORDS[:8]),
        (ChatMode.GARBAGE_STREAM, 200, "not json at all", WORDS[:8]),
        (ChatMode.EMPTY, 200, '"stop"', WORDS[:8]),
        (ChatMode.LENGTH, 200, '"length"', '"stop"'),
        (ChatMode.ERROR_IN_STREAM, 200, "the engine died", "[DONE]"),
    ],
)
async def test_it_misbehaves_with_an_endpoint_behind_it_too(
    mode: ChatMode, status: int, holds: str, lacks: str
) -> None:
    """A server that forwards requests can also simulate every fault itself."""
    async with two(ChatBehaviour(answer=lambda _: WORDS)) as (front, _):
        front.behaviour.mode = mode
        answered, text = await ask(front, stream=True)
    assert answered == status
    assert holds in text
    assert lacks not in text


@pytest.mark.asyncio
async def test_a_connection_that_is_cut_here_is_cut_there() -> None:
    """With `ChatMode.CUT`, the connection to the client is cut in the middle of a forwarded answer."""
    async with two(ChatBehaviour(answer=lambda _: WORDS)) as (front, _):
        front.behaviour.mode = ChatMode.CUT
        with pytest.raises(aiohttp.ClientError):
            await ask(front, stream=True)


@pytest.mark.asyncio
async def test_hanging_up_here_hangs_up_there() -> None:
    """When the client disconnects before the first word, the request to the endpoint is cancelled."""
    asked, ended = asyncio.Event(), asyncio.Event()

    async def think(request: web.Request) -> web.Response:
        asked.set()
        try:
            return await asyncio.Future()
        finally:
            ended.set()

    endpoint = LoopbackServer("thinking", port=0, cancel_abandoned=True)
    await endpoint.open([web.post("/v1/chat/completions", think)])
    try:
        async with in_front_of(endpoint.base_url) as front:
            asking = asyncio.create_task(ask(front, stream=True), name="asking")
            async with asyncio.timeout(PATIENCE_S):
                await asked.wait()
                asking.cancel()
                await ended.wait()
            await asyncio.gather(asking, return_exceptions=True)
    finally:
        await endpoint.close()


@pytest.mark.asyncio
async def test_clients_are_told_the_models_own_name() -> None:
    """The server reports the model's own name, by which clients choose how to count its tokens."""
    async with (
        two(ChatBehaviour(answer=lambda _: WORDS)) as (front, _),
        aiohttp.ClientSession() as session,
        session.get(f"{front.base_url}/models") as response,
    ):
        assert [each["id"] for each in (await response.json())["data"]] == ["small"]


@pytest.mark.asyncio
async def test_the_bots_own_client_finds_no_difference() -> None:
    """The bot's own client gets the same words, tool call and usage as directly from the endpoint."""
    offers = OfferedTools((ToolOffer("memory_search", "Finds what was said.", {"type": "object"}),), callable_now=True)
    question = (ChatMessage(ChatRole.USER, "Where is the key?"),)
    calling = ToolCallAnswer((ScriptedToolCall("memory_search", {"query": "key"}),), words="Let me look.")
    async with two(ChatBehaviour(answer=lambda _: calling)) as servers:
        heard: list[tuple[list[StreamItem], list[Usage]]] = []
        for server in servers:
            told: list[Usage] = []
            async with OpenAIChat(LlmSettings(base_url=server.base_url, model="small")) as chat:
                stream = chat.stream(question, max_output_tokens=50, tools=offers, on_usage=told.append)
                heard.append(([piece async for piece in stream], told))
    through, direct = heard
    assert through == direct
    assert isinstance(through[0][-1], StreamEnd)
    assert [call.name for call in through[0][-1].calls] == ["memory_search"]
