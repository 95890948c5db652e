"""One websocket of the local Discord: an ordered outbox with one writer, so that whoever sends never waits.

State machines decide in one go what everybody is told; a slow client must neither hold them up nor see messages out
of order. A client that lets a thousand messages pile up is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from aiohttp import WSMessage, WSMsgType, web

if TYPE_CHECKING:
    from rehearsal.discord.payloads import Json

_log = structlog.get_logger()

_OUTBOX_MESSAGES = 1000
_SEND_TIMEOUT_S = 10.0
_CLOSE_TIMEOUT_S = 1.0
# Commits of big groups are tens of kilobytes; a megabyte is hostile.
_MAX_MESSAGE_BYTES = 1 << 20
_GOING_AWAY = 1001
_ENDS = frozenset({WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR})


@dataclass(frozen=True, slots=True)
class CloseFrame:
    """A close frame to send."""

    code: int
    reason: str


class WebsocketConnection:
    """A websocket with its outbox. `send` and `close` return at once and keep their order."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.BaseTransport | None) -> None:
        self._socket = socket
        self._transport = transport
        self._outbox: asyncio.Queue[str | bytes | CloseFrame] = asyncio.Queue(_OUTBOX_MESSAGES)
        # The local Discord broke this connection, whatever close code the client answered with.
        self.closed_by_us = False
        # The code of the client's close frame. None when there was none: a process that died says nothing, and
        # aiohttp's own `close_code` calls that 1000.
        self.close_code: int | None = None
        # The close that is to be sent when all that was queued before it is out.
        self.close_frame: CloseFrame | None = None

    def send_json(self, message: Json) -> None:
        """Queue a JSON message."""
        self.send(json.dumps(message, separators=(",", ":")))

    def send(self, frame: str | bytes) -> None:
        """Queue a text or binary message."""
        self._put(frame)

    def close(self, code: int, reason: str = "") -> None:
        """Close after what was queued."""
        self.closed_by_us = True
        self._put(CloseFrame(code, reason))

    def abort(self) -> None:
        """Cut the TCP connection, without a close frame."""
        self.closed_by_us = True
        _cut(self._transport)

    def _put(self, item: str | bytes | CloseFrame) -> None:
        try:
            self._outbox.put_nowait(item)
        except asyncio.QueueFull:
            _log.warning("slow_client_cut_off", queued=self._outbox.qsize())
            self.abort()

    async def write(self) -> None:
        """Send what is queued, up to a close_frame or the connection's end. Run it in a task of its own."""
        try:
            while True:
                item = await self._outbox.get()
                if isinstance(item, CloseFrame):
                    self.close_frame = item
                    return
                async with asyncio.timeout(_SEND_TIMEOUT_S):
                    if isinstance(item, str):
                        await self._socket.send_str(item)
                    else:
                        await self._socket.send_bytes(item)
        except (ConnectionError, RuntimeError, TimeoutError):
            self.abort()


class ConnectionHandler(Protocol):
    """Somebody who talks over a connection: one of the two gateways."""

    def opened(self, connection: WebsocketConnection) -> None:
        """Say hello."""

    def text(self, connection: WebsocketConnection, message: dict[str, Any]) -> None:
        """Handle a JSON message."""

    def binary(self, connection: WebsocketConnection, body: bytes) -> None:
        """Handle a binary message."""

    def closed(self, connection: WebsocketConnection) -> None:
        """Forget the connection."""


class WebsocketServer:
    """Accepts websockets and knows the open ones, so that all of them can be closed."""

    # Discord's close code for what cannot be decoded, the same on both gateways.
    undecodable = 4002

    def __init__(self) -> None:
        self._open: dict[WebsocketConnection, web.WebSocketResponse] = {}
        # TLS transports may outlive their websocket by asyncio's 30 s of waiting for the client's close_notify.
        self._transports: weakref.WeakSet[asyncio.BaseTransport] = weakref.WeakSet()

    async def serve(self, request: web.Request, speaker: ConnectionHandler) -> web.WebSocketResponse:
        """Serve one websocket until it closes."""
        socket = web.WebSocketResponse(max_msg_size=_MAX_MESSAGE_BYTES, timeout=_CLOSE_TIMEOUT_S)
        await socket.prepare(request)
        connection = WebsocketConnection(socket, request.transport)
        self._open[connection] = socket
        if request.transport is not None:
            self._transports.add(request.transport)
        try:
            async with asyncio.TaskGroup() as tasks:
                reader = tasks.create_task(self._read(speaker, connection, socket), name="local-discord-reader")
                writer = tasks.create_task(connection.write(), name="local-discord-writer")
                await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
                reader.cancel()
                writer.cancel()
            # Only with nobody else reading does aiohttp wait for the client's close frame; a client whose own
            # close frame meets a closed socket reports 1006 instead of our code.
            if connection.close_frame is not None:
                await _close(connection, socket, connection.close_frame)
        finally:
            del self._open[connection]
            speaker.closed(connection)
        return socket

    async def _read(
        self, speaker: ConnectionHandler, connection: WebsocketConnection, socket: web.WebSocketResponse
    ) -> None:
        speaker.opened(connection)
        while (message := await socket.receive()).type not in _ENDS:
            self._hear(speaker, connection, message)
        if message.type is WSMsgType.CLOSE:
            connection.close_code = message.data

    def _hear(self, speaker: ConnectionHandler, connection: WebsocketConnection, message: WSMessage) -> None:
        if message.type is WSMsgType.BINARY:
            speaker.binary(connection, message.data)
            return
        if message.type is not WSMsgType.TEXT:
            return
        try:
            decoded = json.loads(message.data)
        except ValueError:
            decoded = None
        if isinstance(decoded, dict) and isinstance(decoded.get("op"), int):
            speaker.text(connection, decoded)
        else:
            connection.close(self.undecodable, "Failed to decode payload")

    async def close_all(self) -> None:
        """Close every websocket; one that does not answer is cut."""
        async with asyncio.TaskGroup() as tasks:
            for connection, socket in list(self._open.items()):
                tasks.create_task(_close(connection, socket, _STOPPED), name="local-discord-close")

    async def close_transports(self) -> None:
        """Let go of every socket, after all else is closed: nothing is left for the garbage collector to find."""
        for transport in list(self._transports):
            _cut(transport)
        # Transports close their sockets in the loop's next turn; a TLS one passes through two of them.
        for _ in range(3):
            await asyncio.sleep(0)


_STOPPED = CloseFrame(_GOING_AWAY, "The local Discord stopped")


def _cut(transport: asyncio.BaseTransport | None) -> None:
    if isinstance(transport, asyncio.WriteTransport):
        # A TLS transport that was closed twice has let go of its connection. In the early Pythons 3.11 (Debian 12 has
        # one) it breaks then instead of doing nothing.
        with contextlib.suppress(AttributeError):
            transport.abort()


async def _close(connection: WebsocketConnection, socket: web.WebSocketResponse, close_frame: CloseFrame) -> None:
    try:
        async with asyncio.timeout(2 * _CLOSE_TIMEOUT_S):
            await socket.close(code=close_frame.code, message=close_frame.reason.encode())
    except (TimeoutError, ConnectionError, RuntimeError):
        connection.abort()
