"""A request that is cancelled at its beginning leaves no connection behind."""

from __future__ import annotations

import asyncio
import gc
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rehearsal.discord.certificate import write_certificate
from tests.patience import PATIENCE_S
from voice import cancellable_http
from voice.endpoint import open_client

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.asyncio


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Let the garbage collector find nothing meanwhile."""
    gc.disable()
    yield
    gc.enable()


def sockets() -> int:
    """Return how many sockets this process has."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        try:
            found += each.readlink().name.startswith("socket:")
        except OSError:  # the folder's own descriptor is gone by now
            continue
    return found


async def _never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer nothing until the other side ends."""
    with suppress(OSError):
        await reader.read()
    writer.close()


async def _answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request, if one comes."""
    with suppress(OSError):
        if (await reader.readline()).strip():
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
    writer.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_cancelled_requests_leave_no_connection_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uncollected: None
) -> None:
    """Cancelled after each number of turns of the event loop, from before the connection to after its TLS handshake."""
    # On a busy machine a handshake takes longer than half a second.
    monkeypatch.setattr(cancellable_http, "UNDER_WAY_S", PATIENCE_S)
    certificate = write_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate_path))
    async with await asyncio.start_server(_answers, "127.0.0.1", 0, ssl=certificate.server_context()) as server:
        port = server.sockets[0].getsockname()[1]
        client = open_client(f"https://127.0.0.1:{port}/v1", "", timeout_s=PATIENCE_S)
        before = sockets()
        for turns in range(40):
            asked = asyncio.create_task(client.models.retrieve("any"))
            for _ in range(turns):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        await client.close()
        async with asyncio.timeout(PATIENCE_S):
            while sockets() > before:  # noqa: ASYNC110 - the system closes them
                await asyncio.sleep(0.01)


async def test_who_cancels_does_not_wait_and_closing_does() -> None:
    """A server that never answers is left after half a second."""
    asked = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.set()
        await _never(reader, writer)

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
