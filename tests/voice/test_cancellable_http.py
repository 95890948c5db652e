"""A request that is cancelled at its beginning leaves no connection behind."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from rehearsal.servers.chat import MODEL, ChatBehaviour, LocalChatServer
from tests.patience import PATIENCE_S
from voice.endpoint import open_client

pytestmark = pytest.mark.asyncio


def sockets() -> int:
    """Return how many sockets this process has."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        try:
            found += each.readlink().name.startswith("socket:")
        except OSError:  # the folder's own descriptor is gone by now
            continue
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_cancelled_requests_leave_no_connection_behind() -> None:
    """Cancelled after each number of turns of the event loop, from before the connection to after the first piece."""
    async with (
        LocalChatServer(ChatBehaviour(answer=lambda call: "An answer of many words. " * 20)) as server,
        open_client(server.base_url, "", timeout_s=PATIENCE_S) as client,
    ):

        async def ask() -> None:
            stream = await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "Hello."}], stream=True
            )
            async with stream:
                async for _ in stream:
                    pass

        await ask()
        before = sockets()
        for turns in range(120):
            asked = asyncio.create_task(ask())
            for _ in range(turns):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        async with asyncio.timeout(PATIENCE_S):
            # Each connection has two sockets here, and one of them may be kept for the next request.
            while sockets() > before + 2:  # noqa: ASYNC110 - the system closes them
                await asyncio.sleep(0.01)
        await ask()


async def test_who_cancels_does_not_wait_and_closing_does() -> None:
    """A server that never answers is left after half a second."""
    asked = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(never, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = open_client(f"http://127.0.0.1:{port}/v1", "", timeout_s=PATIENCE_S)
        request = asyncio.create_task(client.models.retrieve("any"))
        await asked.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert [task.get_name() for task in asyncio.all_tasks()].count("http-request") == 1
        await client.close()
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("http-request")]
