"""What an MCP server may send at once has a bound."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import anyio
import httpx2
import mcp.client.session
import mcp.client.stdio
import mcp.client.streamable_http
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse

from bot.mcp import connection, message_limit
from bot.mcp.message_limit import BoundedMessages, BoundedText, MessageLimit, ServerDroppedError
from tests.patience import PATIENCE_S
from voice.plain_http import open_http

MOST = 100


class Output(anyio.abc.ByteReceiveStream):
    """A program's output, in chunks."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        if not self.chunks:
            raise anyio.EndOfStream
        return self.chunks.pop(0)

    async def aclose(self) -> None:
        """Nothing is open."""


async def read(chunks: list[bytes]) -> tuple[str, MessageLimit]:
    """Return what a reader gets of an output, and its limit."""
    limit = MessageLimit("desk", asyncio.Event())
    message_limit.PROGRAM_LIMIT.set(limit)
    return "".join([text async for text in BoundedText(Output(chunks))]), limit


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_limit, "MOST_MESSAGE_BYTES", MOST)


@given(st.text("ab\n", max_size=400), st.lists(st.integers(1, 80), max_size=20))
def test_output_is_read_whole_unless_a_line_is_too_long(text: str, cuts: list[int]) -> None:
    """However it comes in chunks. What is read of a line that is too long has no more than the bound."""
    chunks, rest = [], text.encode()
    for cut in cuts:
        chunks.append(rest[:cut])
        rest = rest[cut:]
    got, limit = anyio.run(read, [chunk for chunk in (*chunks, rest) if chunk])
    assert (limit.error is not None) == any(len(line) > MOST for line in text.split("\n"))
    assert got == text if limit.error is None else text.startswith(got)
    assert all(len(line) <= MOST for line in got.split("\n"))


async def pieces(count: int) -> AsyncIterator[bytes]:
    """Yield so many times thirty bytes."""
    for _ in range(count):
        yield b"x" * 30


@pytest.mark.parametrize(
    ("kind", "encoding", "count", "why"),
    [
        ("application/json", None, 3, None),
        ("application/json", "identity", 3, None),
        ("application/json", None, 4, "more than"),
        ("text/html", None, 4, "more than"),
        ("text/event-stream; charset=utf-8", None, 4, None),
        ("application/json", "gzip", 1, "compresses"),
        ("text/event-stream", "gzip", 1, "compresses"),
    ],
)
async def test_an_answer_has_a_bound(
    kind: str, encoding: str | None, count: int, why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library bounds the events of a stream. A compressed answer would be measured too late."""
    limit = MessageLimit("web", asyncio.Event())
    headers = {"content-type": kind} | ({} if encoding is None else {"content-encoding": encoding})

    async def answer(_: httpx2.AsyncHTTPTransport, __: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=headers, content=pieces(count))

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", answer)
    async with open_http(
        "http://127.0.0.1:9/mcp",
        timeout=httpx2.Timeout(PATIENCE_S),
        most_bytes=MOST,
        before_request=limit.check_request,
        endless_events=True,
        refusal=limit.refused,
    ) as client:
        if why is None:
            assert len((await client.get("http://127.0.0.1:9/mcp")).content) == 30 * count
        else:
            with pytest.raises(ServerDroppedError, match=why):
                await client.get("http://127.0.0.1:9/mcp")
    assert limit.exceeded.is_set() is (why is not None)


@pytest.mark.parametrize(
    ("value", "most", "passes"),
    [
        ({"content": [0] * 90}, 100, True),
        ({"content": [0] * 110}, 100, False),
        ({"content": [{}] * 110}, 100, False),
        ({"content": [[[0] * 40]] * 3}, 100, False),
        ({"content": [{"type": "text", "text": "0," * 10_000}]}, 100, True),
    ],
)
async def test_what_a_message_is_made_of_has_a_bound(
    value: dict[str, object], most: int, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each value that is none of the protocol's, the library makes errors of some kilobytes. A long text is one."""
    monkeypatch.setattr(message_limit, "MOST_VALUES", most)
    limit = MessageLimit("desk", asyncio.Event())
    sender, receiver = anyio.create_memory_object_stream[SessionMessage | Exception](2)
    sent = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result=value))
    async with sender, BoundedMessages(receiver, limit) as bounded:
        sender.send_nowait(ValueError())
        sender.send_nowait(sent)
        sender.close()
        got = [item async for item in bounded]
    assert (got[1:], limit.error is None) == ([sent] if passes else [], passes)


async def test_a_server_cannot_have_itself_asked_without_a_pause() -> None:
    """It says how soon it is asked again for a stream that has ended. The library would do so for ever."""
    limit = MessageLimit("web", asyncio.Event())
    hooks = {"request": [limit.check_request]}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200))
    async with httpx2.AsyncClient(transport=transport, event_hooks=hooks) as client:

        async def ask_often() -> None:
            for _ in range(message_limit.MOST_REQUESTS_AT_ONCE):
                await client.get("http://web/mcp")

        await ask_often()
        assert not limit.exceeded.is_set()
        with pytest.raises(ServerDroppedError, match=r"web.*again"):
            await ask_often()
    assert limit.exceeded.is_set()


def test_the_library_logs_nothing_of_what_servers_send() -> None:
    """It may quote people, and a server could fill the log with it."""
    assert connection.CONNECT_TIMEOUT_S, "it is imported"
    for module in (mcp.client.session, mcp.client.stdio, mcp.client.streamable_http):
        assert not module.logger.isEnabledFor(logging.ERROR), module.__name__
