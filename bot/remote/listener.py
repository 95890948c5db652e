"""Where rooms' processes reach the gateway process: a websocket, for who has a token and introduces itself."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import structlog
from aiohttp import web

from bot.errors import BotError, SetupError
from bot.remote.address import RoomsAddress
from bot.remote.handlers import Handlers
from bot.remote.hello import AUTHORIZATION, ROOM_PATH, Admitted, is_known, read_hello, refuse
from bot.remote.link import HEARTBEAT_S, MessageLink
from bot.remote.messages import MOST_BYTES
from bot.texts.text import Text
from bot.web.refusals import RefusalCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import TracebackType

    from bot.remote.hello import RoomIdentity

log = structlog.get_logger()

LOOPBACK = "127.0.0.1"
_REFUSE_S = 2.0
# Links that are open or being opened. A bot with more rooms than that has more than one process with a token.
MOST_LINKS = 1_000


class RemoteRoomListener:
    """Listens for rooms' processes. An async context manager.

    `tokens`: returns those that open a link now. `on_link`: gets each room and its link before its first message is
    read, so that it can register handlers and tell things; it raises a `BotError` to refuse the room. `host`, `port`:
    another address than this machine's own only if the operator wants one, because nothing is encrypted; port 0: a free
    one.

    *Ownership*: it runs the links and ends them.
    """

    def __init__(
        self,
        on_link: Callable[[RoomIdentity, MessageLink], None],
        *,
        tokens: Callable[[], Collection[str]],
        host: str = LOOPBACK,
        port: int = 0,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        self._on_link = on_link
        self._tokens = tokens
        self._host, self._port = host, port
        self._heartbeat_s = heartbeat_s
        self._runner: web.AppRunner | None = None
        self._links: set[MessageLink] = set()
        self._opening = 0
        self._refusals = RefusalCounter()

    @property
    def url(self) -> str:
        """Return where rooms connect to."""
        return RoomsAddress(self._host, self._port).url

    async def __aenter__(self) -> Self:
        """Listen. Raises `SetupError`."""
        app = web.Application()
        app.router.add_get(ROOM_PATH, self._serve)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            await runner.cleanup()
            raise SetupError(
                Text(
                    "I cannot listen on {host}:{port} for the processes of my rooms ({reason}). Choose another "
                    "address, or end what uses it.",
                    host=self._host,
                    port=str(self._port),
                    reason=str(error.strerror),
                )
            ) from error
        self._runner, self._port = runner, runner.addresses[0][1]
        log.info("rooms_listening", host=self._host, port=self._port)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        for link in list(self._links):
            link.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if not is_known(request.headers.get(AUTHORIZATION, ""), self._tokens()):
            self._count("token")
            raise web.HTTPUnauthorized
        if self._opening + len(self._links) >= MOST_LINKS:
            self._count("crowded")
            raise web.HTTPServiceUnavailable
        socket = web.WebSocketResponse(heartbeat=self._heartbeat_s, max_msg_size=MOST_BYTES, compress=False)
        self._opening += 1
        try:
            await socket.prepare(request)
            link = await self._opened(socket)
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

    async def _opened(self, socket: web.WebSocketResponse) -> MessageLink | None:
        """Return the link of a room that introduces itself and may come; None for anybody else."""
        with suppress(OSError, TimeoutError):
            try:
                room = await read_hello(socket)
                link = MessageLink(socket, Handlers(), name=f"room-link-{room.guild_id}")
                # Sent first, once the link runs.
                link.tell(Admitted())
                self._on_link(room, link)
            except BotError as error:
                log.warning("room_link_refused", reason="hello", problem=error)
                async with asyncio.timeout(_REFUSE_S):
                    await refuse(socket, error)
                return None
            log.info("room_link_opened", guild_id=room.guild_id, channel_id=room.channel_id, claim=room.claim)
            return link
        return None
