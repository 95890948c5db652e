"""A connection counts as long as it holds a socket, and can be cut off that long."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

import bot.web.open_pages as limits
from bot.web.connection import WebConnection
from bot.web.open_pages import OpenPages


class UnreadTransport(asyncio.Transport):
    """A transport whose other side reads nothing: it closes for ever, until it is aborted."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = False
        self._closing = False

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport.is_closing`."""
        return self._closing

    def close(self) -> None:
        """See `asyncio.BaseTransport.close`."""
        self._closing = True

    def abort(self) -> None:
        """See `asyncio.WriteTransport.abort`."""
        self.aborted = True


@pytest.mark.asyncio
async def test_who_reads_nothing_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that are closing and whose last bytes nobody reads hold a socket each. They count, and the oldest is
    cut off; otherwise somebody could open any number of them.
    """
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 2)
    pages = OpenPages[WebConnection]()

    async def answer(request: web.BaseRequest) -> web.Response:
        del request
        return web.Response()

    server = web.Server(answer)
    unread = [UnreadTransport() for _ in range(3)]
    connections = []
    for transport in unread:
        connection = WebConnection(
            server, loop=asyncio.get_running_loop(), pages=pages, headers=dict, on_malformed=lambda: None
        )
        connection.connection_made(transport)
        connection.force_close()
        connections.append(connection)
    assert [transport.aborted for transport in unread] == [True, False, False]
    pages.cut_all()
    assert all(transport.aborted for transport in unread)
    for connection in connections:
        connection.connection_lost(None)
        assert not connection.is_open
    await server.shutdown()
