"""The websockets of the local Discord. Each has an ordered outbox with one writer, so sending never waits.

A slow client delays no other client, and its messages stay in order. A client with a thousand unread messages is
disconnected, as is one that sends no heartbeats.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import weakref
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog
from aiohttp import WSMessage, WSMsgType, web

from rehearsal.discord.guild.payloads import Json

_log = structlog.get_logger()

_OUTBOX_MESSAGES = 1000
_SEND_TIMEOUT_S = 10.0
_CLOSE_TIMEOUT_S = 1.0
# The commit of a big group is tens of kilobytes long. No valid message reaches a megabyte.
_MAX_MESSAGE_BYTES = 1 << 20
_GOING_AWAY = 1001
_ENDS = frozenset({WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR})


@dataclass(frozen=True, slots=True)
class CloseFrame:
    """The code and reason of a websocket close frame."""

    code: int
    reason: str


class GatewayConnection(Protocol):
    """What a gateway needs of a connection. `send` and `close` return at once and take effect in order."""

    # True when the local Discord closed this connection. The client's close code does not matter then.
    closed_by_us: bool
    # The code of the client's close frame, or None when the client sent no close frame, for example because its process
    # died.
    close_code: int | None

    def send_json(self, message: Json) -> None:
        """Send a JSON message."""

    def send(self, frame: str | bytes) -> None:
        """Send a text or binary message."""

    def close(self, code: int, reason: str = "") -> None:
        """Close the connection once everything before is sent."""

    def abort(self) -> None:
        """Cut the connection, without a close frame."""


class WebsocketConnection:
    """A websocket with its outbox. `send` and `close` return at once and take effect in order. `deflates`: texts are
    sent as one stream that zlib compresses ("Transport Compression" in Discord's reference).
    """

    def __init__(
        self, socket: web.WebSocketResponse, transport: asyncio.BaseTransport | None, *, deflates: bool
    ) -> None:
        self._socket = socket
        self._transport = transport
        self._stream = zlib.compressobj() if deflates else None
        self._outbox: asyncio.Queue[str | bytes | CloseFrame] = asyncio.Queue(_OUTBOX_MESSAGES)
        self.closed_by_us = False
        # aiohttp's own `close_code` is 1000 when the client sent no close frame.
        self.close_code: int | None = None
        # The close frame to send once the messages queued before it are sent.
        self.close_frame: CloseFrame | None = None

    def send_json(self, message: Json) -> None:
        self.send(json.dumps(message, separators=(",", ":")))

    def send(self, frame: str | bytes) -> None:
        """Queue a text or binary message."""
        self._put(frame)

    def close(self, code: int, reason: str = "") -> None:
        """Close the connection once everything queued before is sent."""
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
        """Send queued messages until a close frame is sent or the connection ends. Run this in a task of its own."""
        try:
            while True:
                item = await self._outbox.get()
                if isinstance(item, CloseFrame):
                    self.close_frame = item
                    return
                if self._stream is not None and isinstance(item, str):
                    item = self._stream.compress(item.encode()) + self._stream.flush(zlib.Z_SYNC_FLUSH)
                async with asyncio.timeout(_SEND_TIMEOUT_S):
                    if isinstance(item, str):
                        await self._socket.send_str(item)
                    else:
                        await self._socket.send_bytes(item)
        except (ConnectionError, RuntimeError, TimeoutError):
            self.abort()


@dataclass(slots=True, eq=False, kw_only=True)
class ResumableSession:
    """A client's session on a gateway. Between a disconnect and a resume it has no websocket, and a time to live."""

    connection: GatewayConnection | None
    expiry: asyncio.TimerHandle | None = None

    def stop_expiry(self) -> None:
        """Live on: its websocket is back, or it is over already."""
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None


class ConnectionHandler(Protocol):
    """Handles the messages of a connection. The two gateways implement this protocol."""

    def opened(self, connection: GatewayConnection) -> None:
        """Say hello."""

    def text(self, connection: GatewayConnection, message: dict[str, Any]) -> None:
        """Handle a JSON message."""

    def binary(self, connection: GatewayConnection, body: bytes) -> None:
        """Handle a binary message."""

    def closed(self, connection: GatewayConnection) -> None:
        """Forget the connection."""


class WebsocketServer:
    """Accepts websockets and closes all of them at the end."""

    # Discord's close code for a message that cannot be decoded, the same on both gateways.
    undecodable = 4002

    def __init__(self) -> None:
        self._open: dict[WebsocketConnection, web.WebSocketResponse] = {}
        # A TLS transport can outlive its websocket, because asyncio waits 30 s for the client's close_notify.
        self._transports: weakref.WeakSet[asyncio.BaseTransport] = weakref.WeakSet()

    async def serve(
        self, request: web.Request, handler: ConnectionHandler, *, version: int, otherwise: int
    ) -> web.WebSocketResponse:
        """Accept a websocket, and pass its messages to `handler` until either side closes it.

        `version`: that of the gateway, which the address has to name (`v`). `otherwise`: the code with which another
        one is closed. `handler.closed` is called in any case.
        """
        socket = web.WebSocketResponse(max_msg_size=_MAX_MESSAGE_BYTES, timeout=_CLOSE_TIMEOUT_S)
        await socket.prepare(request)
        deflates = request.query.get("compress") == "zlib-stream"
        connection = WebsocketConnection(socket, request.transport, deflates=deflates)
        if request.query.get("v") != str(version):
            connection.close(otherwise, "Invalid API version")
        self._open[connection] = socket
        if request.transport is not None:
            self._transports.add(request.transport)
        try:
            async with asyncio.TaskGroup() as tasks:
                reader = tasks.create_task(self._read(handler, connection, socket), name="local-discord-reader")
                writer = tasks.create_task(connection.write(), name="local-discord-writer")
                await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
                reader.cancel()
                writer.cancel()
            # The reader and the writer must be over by now, because aiohttp waits for the client's close frame only
            # when no other task reads. Without that wait, the client's close frame can meet a closed socket, and the
            # client then reports code 1006 instead of our code.
            if connection.close_frame is not None:
                await _close(connection, socket, connection.close_frame)
        finally:
            del self._open[connection]
            handler.closed(connection)
        return socket

    async def _read(
        self, handler: ConnectionHandler, connection: WebsocketConnection, socket: web.WebSocketResponse
    ) -> None:
        handler.opened(connection)
        while (message := await socket.receive()).type not in _ENDS:
            self._dispatch(handler, connection, message)
        if message.type is WSMsgType.CLOSE:
            connection.close_code = message.data

    def _dispatch(self, handler: ConnectionHandler, connection: WebsocketConnection, message: WSMessage) -> None:
        if message.type is WSMsgType.BINARY:
            handler.binary(connection, message.data)
            return
        if message.type is not WSMsgType.TEXT:
            return
        try:
            decoded = json.loads(message.data)
        except ValueError:
            decoded = None
        if isinstance(decoded, dict) and isinstance(decoded.get("op"), int):
            handler.text(connection, decoded)
        else:
            connection.close(self.undecodable, "Failed to decode payload")

    async def close_all(self) -> None:
        """Close every websocket, and abort those whose client does not answer."""
        async with asyncio.TaskGroup() as tasks:
            for connection, socket in list(self._open.items()):
                tasks.create_task(_close(connection, socket, _STOPPED), name="local-discord-close")

    async def close_transports(self) -> None:
        """Close every socket that is still open, so that the garbage collector finds none. Call this last."""
        for transport in list(self._transports):
            _cut(transport)
        # A transport closes its socket in the next iteration of the event loop. A TLS transport needs two iterations.
        for _ in range(3):
            await asyncio.sleep(0)


_STOPPED = CloseFrame(_GOING_AWAY, "The local Discord stopped")


def _cut(transport: asyncio.BaseTransport | None) -> None:
    if isinstance(transport, asyncio.WriteTransport):
        # Early versions of Python 3.11 (as in Debian 12) raise when a TLS transport is aborted a second time.
        with contextlib.suppress(AttributeError):
            transport.abort()


async def _close(connection: WebsocketConnection, socket: web.WebSocketResponse, close_frame: CloseFrame) -> None:
    try:
        async with asyncio.timeout(2 * _CLOSE_TIMEOUT_S):
            await socket.close(code=close_frame.code, message=close_frame.reason.encode())
    except (TimeoutError, ConnectionError, RuntimeError):
        connection.abort()


# Discord says only that it closes a client which misses its heartbeats. Half an interval more allows for a slow way.
_ALLOWED_INTERVALS: Final = 1.5


class HeartbeatWatch:
    """Calls `on_silence` with each connection of which no heartbeat has come for one and a half intervals.

    `interval_s`: what the gateway's hello tells the clients. Use it only from the event loop's thread.

    *Ownership*: one timer for each open connection; `close` cancels them.
    """

    def __init__(self, interval_s: float, on_silence: Callable[[GatewayConnection], None]) -> None:
        self.interval_s = interval_s
        self._on_silence = on_silence
        self._timers: dict[GatewayConnection, asyncio.TimerHandle] = {}

    @property
    def interval_ms(self) -> int:
        """The interval as a hello has it."""
        return round(self.interval_s * 1000)

    def close(self) -> None:
        """Cancel every timer."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def opened(self, connection: GatewayConnection) -> None:
        """Begin to wait for heartbeats of a connection."""
        loop = asyncio.get_running_loop()
        allowed_s = self.interval_s * _ALLOWED_INTERVALS
        self._timers[connection] = loop.call_later(allowed_s, self._silent, connection)

    def beat(self, connection: GatewayConnection) -> None:
        """Note a heartbeat."""
        if self.closed(connection):
            self.opened(connection)

    def closed(self, connection: GatewayConnection) -> bool:
        """Stop waiting for a connection. Return whether it was waited for."""
        timer = self._timers.pop(connection, None)
        if timer is None:
            return False
        timer.cancel()
        return True

    def _silent(self, connection: GatewayConnection) -> None:
        del self._timers[connection]
        self._on_silence(connection)
