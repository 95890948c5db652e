"""Where rooms' processes reach the gateway process: a websocket, for who has a token and introduces itself.

On this machine the request proves the token, and the first word that it is answered with proves it too (`token_proof`).
Between machines the link is encrypted, and TLS has asked for the token before there is a request (`link_encryption`).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import structlog
from aiohttp import web

from bot.errors import BotError, SetupError, why_not_listening
from bot.remote.link.address import LOOPBACK, RoomsAddress
from bot.remote.link.encrypted_port import EncryptedPort
from bot.remote.link.handlers import Handlers
from bot.remote.link.hello import NOT_ENCRYPTED, ROOM_PATH, Admitted, read_hello, refuse
from bot.remote.link.link_encryption import gateway_encryption
from bot.remote.link.message_link import MessageLink
from bot.remote.link.streams import MOST_WORD_BYTES, STREAM_PATH, TICKET, Streams
from bot.remote.link.token_proof import AUTHORIZATION, gateway_proof, proven_number
from bot.remote.messages.frames import MOST_BYTES
from bot.remote.messages.wire_error import NotYetError
from bot.texts.text import Text
from bot.web.quiet_connection import QuietConnection, quiet_application
from bot.web.refusals import RefusalCounter, WebRefusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from bot.remote.link.hello import RoomIdentity

log = structlog.get_logger()

_REFUSE_S = 2.0
# The room's process waits a second longer (`hello.HELLO_S`).
_ADMIT_S = 4.0
# Seconds of silence after which the gateway process pings; the answer must come within half of that. A room tells
# something every second, so one that is frozen, or whose machine is gone, is known after 3.5 to 4.5 s, and goes on
# elsewhere within another; one that stalls for three seconds is not given up.
ROOM_HEARTBEAT_S = 3.0
# A process opens one for each room that it can run, and one for an emergency: so these are 1,000 processes of one room
# each. asyncio keeps a buffer of 256 KiB for each encrypted one, half a gibibyte for all.
MOST_LINKS = 2_000
# Links that are being opened. When a bot is started again, all of its rooms' processes come at once.
MOST_OPENING = 2_000
# How long a connection may stay without a request. aiohttp would wait for an hour.
REQUEST_WITHIN_S = 5.0
# Connections of this machine without a request that proves the token, as `encrypted_port` has for others: for
# one more the oldest is closed, and whoever has the token sends a request at once.
MOST_SILENT = 100

FULL = Text(
    "The bot has as many processes for its rooms as it takes ({most} links), so it does not take another one. Share "
    "its servers among several bots by --shards (docs/sharding.md), or let each process run more rooms by --rooms-each."
)


class RemoteRoomListener:
    """Listens for rooms' processes. An async context manager. Making one raises `SetupError` for a token that could be
    guessed.

    `token`: opens a link. `on_link`: gets each room and its link before its first message is read, so that it can
    register handlers and tell things; it raises a `BotError` to refuse the room, and may return what has to be awaited
    first, which may raise one too. `at`: where processes of other machines open theirs, encrypted; None: at a free port
    of this machine's own address, for the processes on it. `streams`: what they may open
    besides.

    *Ownership*: it runs the links and ends them.
    """

    def __init__(
        self,
        on_link: Callable[[RoomIdentity, MessageLink], Awaitable[None] | None],
        token: str,
        *,
        at: RoomsAddress | None = None,
        streams: Streams | None = None,
        heartbeat_s: float = ROOM_HEARTBEAT_S,
    ) -> None:
        self._on_link = on_link
        self._token = token
        self._tls = None if at is None else gateway_encryption(token)
        self._streams = streams or Streams()
        self._sockets: set[web.WebSocketResponse] = set()
        self._at = at or RoomsAddress(LOOPBACK, 0)
        self._heartbeat_s = heartbeat_s
        self._stack = AsyncExitStack()
        self._links: set[MessageLink] = set()
        self._opening = 0
        # Connections without a request that proves the token, and some that are closed by now, oldest first.
        self._silent: dict[web.RequestHandler, None] = {}
        self._refusals = RefusalCounter()

    @property
    def url(self) -> str:
        """Return where rooms connect to."""
        return self._at.url(encrypted=self._tls is not None)

    async def __aenter__(self) -> Self:
        """Listen. Raises `SetupError`."""
        app = quiet_application()
        app.router.add_get(ROOM_PATH, self._serve)
        app.router.add_get(STREAM_PATH, self._serve_stream)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        try:
            port = await self._listen(runner)
        except OSError as error:
            await self._stack.aclose()
            raise SetupError(
                Text(
                    "I cannot listen on {host}:{port} for the processes of my rooms ({reason}). Choose another "
                    "address, or end what uses it.",
                    host=self._at.host,
                    port=str(self._at.port),
                    reason=why_not_listening(error),
                )
            ) from error
        self._at = replace(self._at, port=port)
        log.info("rooms_listening", host=self._at.host, port=port, encrypted=self._tls is not None)
        return self

    async def _listen(self, runner: web.AppRunner) -> int:
        """Listen, and return the port. Raises `OSError`."""
        server = runner.server
        assert server is not None, "set up"
        loop = asyncio.get_running_loop()

        def serve() -> QuietConnection:
            return QuietConnection(
                server,
                loop=loop,
                on_malformed=lambda: self._count(WebRefusal.MALFORMED),
                keepalive_timeout=REQUEST_WITHIN_S,
            )

        if self._tls is None:
            listening = await loop.create_server(lambda: self._accepted(serve()), self._at.host, self._at.port)
            self._stack.callback(listening.close)
            port: int = listening.sockets[0].getsockname()[1]
            return port
        port_of_others = EncryptedPort(serve, self._tls, self._at.host, self._at.port, on_refused=self._count)
        return (await self._stack.enter_async_context(port_of_others)).port

    def _accepted(self, connection: web.RequestHandler) -> web.RequestHandler:
        """Take a connection of this machine that has not sent anything yet."""
        if len(self._silent) >= MOST_SILENT:
            oldest = next(iter(self._silent))
            del self._silent[oldest]
            if oldest.transport is not None:
                self._count("crowded")
                oldest.force_close()
        self._silent[connection] = None
        return connection

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        for link in list(self._links):
            link.close()
        for socket in list(self._sockets):
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_REFUSE_S):
                    await socket.close()
        await self._stack.aclose()

    def _checked(self, request: web.Request) -> str | None:
        """Refuse a request that does not prove the token. Return the number to which this process proves that it has
        it too; None between machines, where TLS has done both before.
        """
        number = None if self._tls else proven_number(request.headers.get(AUTHORIZATION, ""), self._token)
        if self._tls is None and number is None:
            self._count("token")
            raise web.HTTPUnauthorized
        self._silent.pop(request.protocol, None)
        return number

    async def _prepare(self, socket: web.WebSocketResponse, request: web.Request, number: str | None) -> None:
        """Open a websocket. `number`: see `_checked`."""
        await socket.prepare(request)
        if number is not None:
            await socket.send_str(gateway_proof(self._token, number))

    async def _serve_stream(self, request: web.Request) -> web.StreamResponse:
        """Serve a websocket besides a link, for who has a ticket."""
        number = self._checked(request)
        serve = None if self._is_plain(request) else self._streams.find(request.headers.get(TICKET, ""))
        if serve is None:
            raise web.HTTPNotFound
        socket = web.WebSocketResponse(heartbeat=self._heartbeat_s, max_msg_size=MOST_WORD_BYTES, compress=False)
        await self._prepare(socket, request, number)
        self._sockets.add(socket)
        try:
            await serve(socket)
        finally:
            self._sockets.discard(socket)
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_REFUSE_S):
                    await socket.close()
        return socket

    def _is_plain(self, request: web.Request) -> bool:
        """Return whether a request should be encrypted and is not."""
        return self._tls is not None and not request.secure

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        number = self._checked(request)
        if self._opening >= MOST_OPENING:
            self._count("crowded")
            raise web.HTTPServiceUnavailable
        # Nobody without the token makes this process keep anything large.
        most_bytes = MOST_WORD_BYTES if self._is_plain(request) else MOST_BYTES
        socket = web.WebSocketResponse(heartbeat=self._heartbeat_s, max_msg_size=most_bytes, compress=False)
        self._opening += 1
        try:
            await self._prepare(socket, request, number)
            link = await (self._told_to_encrypt(socket) if self._is_plain(request) else self._opened(socket))
        finally:
            self._opening -= 1
        if link is None:
            await socket.close()
            return socket
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)
        return socket

    def _count(self, reason: str) -> None:
        """Count a process without a token, or one too many; a flood of them makes one log line a minute."""
        if figures := self._refusals.count(reason, time.monotonic()):
            log.warning("room_links_refused", **figures)

    async def _told_to_encrypt(self, socket: web.WebSocketResponse) -> None:
        """Tell a process of a Roomtone that does not encrypt yet why it is refused."""
        self._count("plain")
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_REFUSE_S):
                await refuse(socket, SetupError(NOT_ENCRYPTED))

    async def _opened(self, socket: web.WebSocketResponse) -> MessageLink | None:
        """Return the link of a room that introduces itself and may come; None for anybody else."""
        with suppress(OSError, TimeoutError):
            try:
                room = await read_hello(socket)
                # A room that runs is never refused for this: it would have to end.
                if not room.guild_id and len(self._links) >= MOST_LINKS:
                    raise SetupError(FULL.fill(most=MOST_LINKS))
                link = MessageLink(socket, Handlers(), name=f"room-link-{room.guild_id}")
                await self._admit(room, link)
            except BotError as error:
                if not isinstance(error, NotYetError):
                    log.warning("room_link_refused", reason="hello", problem=error)
                async with asyncio.timeout(_REFUSE_S):
                    await refuse(socket, error)
            else:
                log.info("room_link_opened", guild_id=room.guild_id, channel_id=room.channel_id, claim=room.claim)
                return link
        return None

    async def _admit(self, room: RoomIdentity, link: MessageLink) -> None:
        """Return once the room may come. Raises `BotError` if it may not, and `TimeoutError`; the link is over then."""
        # Sent first, once the link runs.
        link.tell(Admitted())
        try:
            admission = self._on_link(room, link)
            if admission is not None:
                async with asyncio.timeout(_ADMIT_S):
                    await admission
        except BaseException:
            # Whoever has it by now learns that it is over.
            link.close()
            raise
