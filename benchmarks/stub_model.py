"""Fake OpenAI endpoints: any answers (`chat_endpoint`), or one that comes after a fixed time (`stub_endpoint`).

The second measures what waiting for a model costs: whole answers come after `answer_s`; streamed ones begin at once and
go on until the caller disconnects. Just enough HTTP for these clients is implemented, on 127.0.0.1 only.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from benchmarks.local_model import ChatEndpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from benchmarks.report import Json

MODEL = "stub"
SUMMARY = "They talked about the evening, and nothing was decided."
# The maximum number of pieces of a streamed reply, and the seconds between them.
_PIECES = 2_000
_PIECE_S = 0.01


@asynccontextmanager
async def stub_endpoint(*, answer_s: float) -> AsyncIterator[ChatEndpoint]:
    """Run the stub server until the `async with` block ends."""

    async def answer(body: dict[str, Json]) -> str:
        del body
        await asyncio.sleep(answer_s)
        return SUMMARY

    async with chat_endpoint(answer, model=MODEL) as endpoint:
        yield endpoint


@asynccontextmanager
async def chat_endpoint(
    answer: Callable[[dict[str, Json]], Awaitable[str]], *, model: str
) -> AsyncIterator[ChatEndpoint]:
    """Answer requests with what `answer` returns for their bodies, until the `async with` block ends."""
    open_calls: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_calls.add(task)
        try:
            while await _answer(reader, writer, answer, model):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the caller hung up, which is what is measured, or the endpoint is closed
        finally:
            open_calls.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield ChatEndpoint(f"http://127.0.0.1:{port}/v1", model, local=True)
    finally:
        server.close()
        for call in list(open_calls):
            call.cancel()
        await asyncio.gather(*open_calls, return_exceptions=True)


async def _answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    answer: Callable[[dict[str, Json]], Awaitable[str]],
    model: str,
) -> bool:
    """Answer one request; return whether the connection stays open."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-length":
            length = int(value)
    body = json.loads(await reader.readexactly(length)) if length else {}
    if body.get("stream"):
        await _stream(writer)
        return False
    text = await answer(body)
    message = {"role": "assistant", "content": text}
    # About four characters a token, as in English.
    asked, given = max(1, length // 4), max(1, len(text) // 4)
    completion = {
        "id": model,
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": asked, "completion_tokens": given, "total_tokens": asked + given},
    }
    data = json.dumps(completion).encode()
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + str(len(data)).encode() + b"\r\n\r\n"
    )
    writer.write(data)
    await writer.drain()
    return True


async def _stream(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    for _ in range(_PIECES):
        choice = {"index": 0, "delta": {"role": "assistant", "content": "well "}, "finish_reason": None}
        piece = {"id": "stub", "object": "chat.completion.chunk", "created": 0, "model": MODEL, "choices": [choice]}
        writer.write(f"data: {json.dumps(piece)}\n\n".encode())
        await writer.drain()
        await asyncio.sleep(_PIECE_S)
    writer.write(b"data: [DONE]\n\n")
    await writer.drain()
