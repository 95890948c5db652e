"""Accepts the connections of other machines and lets those through that prove with TLS that they have the token.

Why not aiohttp's own site: asyncio's servers say nothing of a handshake that failed, so an operator would not see that
a machine has another token. And a Roomtone that does not encrypt yet shall get a sentence: it is known by its first
byte, and let through without TLS to be told.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import structlog

from bot.background_task import logged_task

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine
    from types import TracebackType

log = structlog.get_logger()

# A handshake takes two ways through the network.
OPEN_WITHIN_S: Final = 5.0
# Connections that have not proven anything yet. For one more the oldest is closed: a handshake takes milliseconds, so
# whoever says nothing is the oldest, and keeps nobody out. When a bot is started again, as many processes may come at
# once (`listener.MOST_LINKS`). In a handshake asyncio keeps 256 KiB for each, so strangers can take 256 MiB.
MOST_OPENING: Final = 1_000
# And at most this part of the files that the process may open, so that strangers leave it some for all else.
_SHARE_OF_FILES: Final = 1 / 4
_BACKLOG: Final = 128
# After an error of the system, for example that no file can be opened any more. asyncio waits as long.
_ACCEPT_AGAIN_S: Final = 1.0
_NO_MORE_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
_MORE_FILES: Final = {"remedy": "raise how many files the bot may have open (LimitNOFILE of its service, ulimit -n)"}
# The first byte of TLS: a handshake record (RFC 8446, 5.1). Requests of HTTP begin with a letter.
_TLS_BYTE: Final = b"\x16"


class EncryptedPort:
    """Listens at one address. An async context manager; entering raises `OSError`. `port`: 0 is a free one.

    `serve`: makes the protocol of a connection; what came without TLS is known there by its transport. `on_refused`:
    gets the reason why a connection was closed: "token", "crowded".

    *Ownership*: it owns the tasks that accept and open connections; who made `serve` owns the open ones.
    """

    def __init__(
        self,
        serve: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext,
        host: str,
        port: int,
        *,
        on_refused: Callable[[str], None],
    ) -> None:
        self._serve = serve
        self._tls = tls
        self._host, self.port = host, port
        self._on_refused = on_refused
        self._listening: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        # Those of connections that have not proven anything yet, oldest first.
        self._opening: dict[asyncio.Task[None], None] = {}

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
                listening = socket.create_server(address, family=family, backlog=_BACKLOG)
                listening.setblocking(False)
                self._listening.append(listening)
        except OSError:
            self._close()
            raise
        self.port = self._listening[0].getsockname()[1]
        for listening in self._listening:
            self._start(self._accept(listening), "accept")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._close()

    def _close(self) -> None:
        for listening in self._listening:
            listening.close()

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = logged_task(work, name=f"rooms-port-{name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        most = _most_opening()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError as error:
                remedy = _MORE_FILES if error.errno in _NO_MORE_FILES else {}
                log.warning("room_links_not_accepted", problem=error.strerror, **remedy)
                await asyncio.sleep(_ACCEPT_AGAIN_S)
                continue
            if len(self._opening) >= most:
                oldest = next(iter(self._opening))
                del self._opening[oldest]
                oldest.cancel()
                self._on_refused("crowded")
            opening = self._start(self._open(connection), "open")
            self._opening[opening] = None
            # Also one that was closed before it began.
            opening.add_done_callback(partial(self._opened, connection))
            # `sock_accept` does not yield while connections wait. Each shall begin before it can be the oldest of many.
            await asyncio.sleep(0)

    def _opened(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._opening.pop(task, None)
        if task.cancelled():
            connection.close()

    async def _open(self, connection: socket.socket) -> None:
        """Let a connection through, or close it."""
        try:
            first = await self._first_byte_of(connection)
            if first == _TLS_BYTE:
                await self._let_through(connection, ssl=self._tls, ssl_handshake_timeout=OPEN_WITHIN_S)
            elif first:
                await self._tell_plainly(connection)
            else:
                # Something looked whether the port is open.
                connection.close()
        except (OSError, TimeoutError):
            self._on_refused("token")

    async def _first_byte_of(self, connection: socket.socket) -> bytes:
        try:
            async with asyncio.timeout(OPEN_WITHIN_S):
                return await _first_byte(connection)
        except BaseException:
            connection.close()
            raise

    async def _tell_plainly(self, connection: socket.socket) -> None:
        """Let who came without TLS be told why it is refused. It proves nothing, so it counts as before, and not for
        long.
        """
        transport = await self._let_through(connection)
        try:
            await asyncio.sleep(OPEN_WITHIN_S)
        finally:
            transport.abort()

    async def _let_through(self, connection: socket.socket, **tls: Any) -> asyncio.Transport:
        """Give a connection to the server. asyncio closes it if the handshake fails."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_accepted_socket(self._serve, connection, **tls)
        return transport


def _most_opening() -> int:
    """Return how many connections may be opening at once."""
    try:
        import resource
    except ImportError:
        # The system has no such limit.
        return MOST_OPENING
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_OPENING if files == resource.RLIM_INFINITY else min(MOST_OPENING, int(files * _SHARE_OF_FILES))


async def _first_byte(connection: socket.socket) -> bytes:
    """Return the first byte that comes, which stays to be read; empty if the other side has closed."""
    loop = asyncio.get_running_loop()
    while True:
        readable = asyncio.Event()
        loop.add_reader(connection, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(connection)
        try:
            return connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            continue
