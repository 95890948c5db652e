"""Plain websockets to the local Discord. Tests use them to send messages that a well-behaved client never sends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from rehearsal.discord import LocalDiscord
from tests.patience import PATIENCE_S


class Bare:
    """A websocket that sends and receives JSON messages with opcodes."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self.websocket = websocket

    async def send(self, opcode: int, data: object = None) -> None:
        """Send one message."""
        await self.websocket.send_str(json.dumps({"op": opcode, "d": data}))

    async def receive(self, opcode: int) -> dict[str, Any]:
        """Return the next message with this opcode. Messages with other opcodes are skipped."""
        async with asyncio.timeout(PATIENCE_S):
            async for message in self.websocket:
                if message.type is aiohttp.WSMsgType.TEXT and (found := json.loads(message.data))["op"] == opcode:
                    assert isinstance(found, dict)
                    return found
        raise AssertionError(f"closed with {self.websocket.close_code} before op {opcode}")

    def kill(self) -> None:
        """Abort the TCP connection, as happens when a client process dies."""
        response = self.websocket._response
        assert response is not None
        assert response.connection is not None
        assert response.connection.transport is not None
        response.connection.transport.abort()

    async def close_code(self) -> int | None:
        """Wait until the server closes the websocket and return its close code."""
        async with asyncio.timeout(PATIENCE_S):
            async for _ in self.websocket:
                pass
        return self.websocket.close_code


@contextlib.asynccontextmanager
async def bare_gateway(local: LocalDiscord, query: str = "v=10&encoding=json") -> AsyncIterator[Bare]:
    """Connect to the main gateway."""
    async with aiohttp.ClientSession() as http, http.ws_connect(f"{local.gateway_url}?{query}") as websocket:
        yield Bare(websocket)


@contextlib.asynccontextmanager
async def bare_voice(local: LocalDiscord, version: int = 8) -> AsyncIterator[Bare]:
    """Connect to the voice gateway."""
    tls = ssl.create_default_context(cafile=str(local.certificate_path))
    url = f"wss://{local.voice_endpoint}/?v={version}"
    async with aiohttp.ClientSession() as http, http.ws_connect(url, ssl=tls) as websocket:
        yield Bare(websocket)
