"""A fake OpenAI endpoint that answers after a fixed time, to measure the cost of waiting for a model.

A whole answer comes after `answer_s`. A streamed answer begins at once and continues until the caller disconnects. The
stub implements just enough HTTP for these clients, and listens only on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from benchmarks.local_model import ChatEndpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MODEL = "stub"
SUMMARY = "They talked about the evening, and nothing was decided."
# The maximum number of pieces of a streamed reply, and the seconds between them.
_PIECES = 2_000
_PIECE_S = 0.01


@asynccontextmanager
async def stub_endpoint(*, answer_s: float) -> AsyncIterator[ChatEndpoint]:
    """Run the stub server until the `async with` block ends."""
    open_calls: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_calls.add(task)
        try:
            while await _answer(reader, writer, answer_s):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the caller hung up, which is what is measured
        finally:
            open_calls.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield ChatEndpoint(f"http://127.0.0.1:{port}/v1", MODEL, local=True)
    finally:
        server.close()
        for call in list(open_calls):
            call.cancel()
        await asyncio.gather(*open_calls, return_exceptions=True)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer_s: float) -> bool:
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
    await asyncio.sleep(answer_s)
    message = {"role": "assistant", "content": SUMMARY}
    answer = {
        "id": "stub",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    data = json.dumps(answer).encode()
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
