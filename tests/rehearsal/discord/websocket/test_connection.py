"""A websocket's outbox keeps its order and disconnects slow clients, and closing the server leaves nothing open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from rehearsal.discord.websocket.connection import GatewayConnection, WebsocketServer
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable


class _Echo:
    """A handler that calls the test's `answer` when a message arrives and echoes binary frames."""

    def __init__(self, answer: Callable[[GatewayConnection, dict[str, Any]], None]) -> None:
        self.answer = answer
        self.ended = asyncio.Event()
        self.close_code: int | None = None

    def opened(self, connection: GatewayConnection) -> None:
        """Send op 8 (hello)."""
        connection.send_json({"op": 8})

    def text(self, connection: GatewayConnection, message: dict[str, Any]) -> None:
        """Call the test's answer."""
        self.answer(connection, message)

    def binary(self, connection: GatewayConnection, body: bytes) -> None:
        """Echo the frame."""
        connection.send(body)

    def closed(self, connection: GatewayConnection) -> None:
        """Remember the close code."""
        self.close_code = connection.close_code
        self.ended.set()


class _Server:
    """A `WebsocketServer` that listens on a port."""

    def __init__(self, echo: _Echo) -> None:
        self.switchboard = WebsocketServer()
        self._echo = echo
        application = web.Application()
        application.router.add_get("/", self._serve)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        self.url = ""

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        return await self.switchboard.serve(request, self._echo)

    async def __aenter__(self) -> _Server:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.switchboard.close_all()
        await self._runner.cleanup()
        await self.switchboard.close_transports()


async def test_messages_and_the_close_keep_their_order() -> None:
    """Every message that was sent before `close` arrives, and then the close code."""

    def answer(connection: GatewayConnection, message: dict[str, Any]) -> None:
        for number in range(50):
            connection.send_json({"op": number})
        connection.close(4014, "enough")
        connection.send_json({"op": 99})

    echo = _Echo(answer)
    async with _Server(echo) as server, aiohttp.ClientSession() as http, http.ws_connect(server.url) as websocket:
        await websocket.send_bytes(b"\x01\x02")
        await websocket.send_str('{"op": 1}')
        texts: list[int] = []
        binaries: list[bytes] = []
        async for message in websocket:
            if message.type is aiohttp.WSMsgType.BINARY:
                binaries.append(message.data)
            else:
                texts.append(message.json()["op"])
        assert (texts, binaries) == ([8, *range(50)], [b"\x01\x02"])
        assert websocket.close_code == 4014
        async with asyncio.timeout(PATIENCE_S):
            await echo.ended.wait()
