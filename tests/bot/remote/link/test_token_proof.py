"""Both ends of a link on one machine prove that they have its token, and who has taken the port is told nothing."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from bot.remote.link.address import LOOPBACK
from bot.remote.link.gateway_link import _check_gateway
from bot.remote.link.hello import ROOM_PATH
from bot.remote.link.streams import STREAM_PATH
from bot.remote.link.token_proof import (
    AUTHORIZATION,
    gateway_proof,
    is_gateway_proof,
    new_number,
    proven_number,
    room_proof,
)
from bot.remote.messages.voice_messages import IsInChannel
from bot.remote.messages.wire_error import OtherProcessError
from tests.bot.remote.peers import TOKEN, linked, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NUMBER = "0f" * 16


def test_who_has_the_token_proves_it() -> None:
    """In either direction, and the token is in neither word."""
    assert proven_number(room_proof(TOKEN, NUMBER), TOKEN) == NUMBER
    assert is_gateway_proof(gateway_proof(TOKEN, NUMBER), TOKEN, NUMBER)
    assert TOKEN not in room_proof(TOKEN, NUMBER) + gateway_proof(TOKEN, NUMBER)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("", TOKEN),
        ("", ""),
        (room_proof("", NUMBER), ""),
        (room_proof("another", NUMBER), TOKEN),
        (f"Roomtone {NUMBER} {gateway_proof(TOKEN, NUMBER)}", TOKEN),
        (room_proof(TOKEN, NUMBER).replace("0f", "0e", 1), TOKEN),
        (f"{room_proof(TOKEN, NUMBER)} more", TOKEN),
        (f"Bearer {TOKEN}", TOKEN),
        ("Roomtone \udcff \xe9", TOKEN),
    ],
)
def test_anything_else_proves_nothing(header: str, token: str) -> None:
    """Another token or none, the other side's word, another number, and what is no proof."""
    assert proven_number(header, token) is None


@pytest.mark.parametrize("word", ["", room_proof(TOKEN, NUMBER), gateway_proof("another", NUMBER), "\ud83d"])
def test_the_gateways_word_is_for_one_number(word: str) -> None:
    """What it has said to another one proves nothing either."""
    assert not is_gateway_proof(word, TOKEN, NUMBER)
    assert not is_gateway_proof(gateway_proof(TOKEN, new_number()), TOKEN, NUMBER)


class Impostor:
    """Somebody who listens at the port that a killed gateway process has left. `headers`, `words`: what it is sent."""

    def __init__(self, says: str) -> None:
        self.headers: list[str] = []
        self.words: list[str] = []
        self._says = says

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Yield its address."""
        app = web.Application()
        app.router.add_get(ROOM_PATH, self._serve)
        app.router.add_get(STREAM_PATH, self._serve)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, LOOPBACK, 0)
            await site.start()
            yield f"ws://{LOOPBACK}:{runner.addresses[0][1]}{ROOM_PATH}"
        finally:
            await runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(str(request.headers))
        if self._says == "401":
            raise web.HTTPUnauthorized
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        _, _, code = request.headers[AUTHORIZATION].rpartition(" ")
        await socket.send_str(code if self._says == "the room's word" else self._says)
        async for message in socket:
            self.words.append(str(message.data))
        return socket


@pytest.mark.parametrize("says", ["the room's word", '{"kind":"tell","name":"Admitted"}\n{}', "401"])
@pytest.mark.asyncio
async def test_who_takes_the_port_of_the_gateway_process_is_told_nothing(says: str) -> None:
    """The room does not introduce itself there and is not ended by it. It links again once the bot answers."""
    impostor = Impostor(says)
    async with linked() as ends, AsyncExitStack() as stack:
        honest, ends.room._url = ends.room._url, await stack.enter_async_context(impostor.listening())
        with capture_logs() as logs:
            ends.gateway.close()
            await until(lambda: len(impostor.headers) > 1)
            with pytest.raises(OtherProcessError, match="not there"):
                await ends.room.ask(IsInChannel(), within_s=1)
            with pytest.raises((aiohttp.ClientError, OSError)):
                await stack.enter_async_context(ends.room.stream("ticket", most_bytes=10))
        assert ("gateway_not_trusted" in [each["event"] for each in logs]) == (says != "401")
        assert impostor.words == []
        assert not any(TOKEN in header for header in impostor.headers)
        ends.room._url = honest
        await until(lambda: len(ends.links) == 2 and ends.room.is_open)


class Clinging:
    """A websocket whose other side proves nothing, and ends no goodbye."""

    def __init__(self) -> None:
        self.is_asked = self.is_closing = False

    async def receive(self) -> aiohttp.WSMessage:
        """Wait for ever."""
        self.is_asked = True
        await asyncio.Event().wait()
        raise AssertionError

    async def close(self) -> bool:
        """Wait as aiohttp does while something comes instead of the other side's last frame."""
        self.is_closing = True
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.asyncio
async def test_who_has_taken_the_port_keeps_no_room_there() -> None:
    """The room tries again although the other side does not let go."""
    socket = Clinging()
    checking = asyncio.create_task(_check_gateway(cast("Any", socket), TOKEN, NUMBER))
    await until(lambda: socket.is_asked)
    # The time is over in which a gateway process proves itself.
    checking.cancel()
    await until(checking.done)
    assert socket.is_closing
    assert checking.cancelled()
