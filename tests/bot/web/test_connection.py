"""A connection counts as long as it holds a socket, and can be cut off that long. Refused requests are told at most
once a minute.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

import bot.web.connection as limits
from bot.web.connection import (
    MAX_CONNECTIONS,
    MAX_SOCKETS_PER_CLIENT,
    MAX_SOCKETS_PER_LINK,
    OpenPages,
    Visits,
    WebConnection,
)
from bot.web.security import ClientAddress, Site, TrustedProxies
from tests.fakes.clock import FakeClock


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


async def test_who_reads_nothing_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that are closing and whose last bytes nobody reads hold a socket each. They count, and the oldest is
    cut off; otherwise somebody could open any number of them.
    """
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 2)
    visits = Visits(Site.of("", port=1), TrustedProxies(()), FakeClock())

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response()

    server = web.Server(answer)
    unread = [UnreadTransport() for _ in range(3)]
    connections = []
    for transport in unread:
        connection = WebConnection(server, loop=asyncio.get_running_loop(), visits=visits)
        connection.connection_made(transport)
        connection.force_close()
        connections.append(connection)
    assert [transport.aborted for transport in unread] == [True, False, False]
    visits.pages.cut_all()
    assert all(transport.aborted for transport in unread)
    for connection in connections:
        connection.connection_lost(None)
        assert not connection.is_open
    await server.shutdown()


ANYBODY = ClientAddress("127.0.0.1", vouched=False)
HOUSEHOLD = ClientAddress("198.51.100.1", vouched=True)


class Wire:
    """A connection that remembers whether it was cut off."""

    is_open = True

    def cut(self) -> None:
        """See `WebConnection.cut`."""
        self.is_open = False


def connect(pages: OpenPages, client: ClientAddress = ANYBODY, link: str = "") -> Any:
    """Open a connection, and show a link if there is one."""
    wire: Any = Wire()
    pages.connected(wire)
    if link:
        pages.opened(wire, client)
        pages.admitted(wire, link)
    return wire


def test_silent_connections_make_room_oldest_first() -> None:
    """Of too many connections, the oldest without a valid link is cut off, and no page that shares."""
    pages = OpenPages()
    sharing = connect(pages, link="ada")
    silent = [connect(pages) for _ in range(MAX_CONNECTIONS + 4)]
    assert [wire.is_open for wire in silent] == [False] * 5 + [True] * (MAX_CONNECTIONS - 1)
    assert sharing.is_open


def test_where_all_share_the_newest_is_cut_off() -> None:
    """If every connection belongs to a page that shares, a new one is cut off."""
    pages = OpenPages()
    sharing = [connect(pages, link=str(number)) for number in range(MAX_CONNECTIONS)]
    assert not connect(pages).is_open
    assert all(wire.is_open for wire in sharing)
    sharing[0].is_open = False
    assert connect(pages).is_open


def test_only_a_vouched_address_is_counted() -> None:
    """The limit of an address applies where a trusted proxy vouches for it, and ends with the sockets."""
    pages = OpenPages()
    wires: list[Any] = [Wire() for _ in range(MAX_SOCKETS_PER_CLIENT)]
    for wire in wires:
        assert pages.has_room(HOUSEHOLD)
        pages.opened(wire, HOUSEHOLD)
        pages.opened(cast("Any", Wire()), ANYBODY)
    assert not pages.has_room(HOUSEHOLD)
    assert pages.has_room(ANYBODY)
    assert pages.has_room(ClientAddress("198.51.100.2", vouched=True))
    pages.closed(wires[0])
    assert pages.has_room(HOUSEHOLD)


@given(st.lists(st.sampled_from(["", "ada", "bo"]), max_size=60))
def test_a_link_never_has_too_many_sockets(links: list[str]) -> None:
    """Whatever the order, each link has at most its number of open sockets, and the newest of them is open."""
    pages = OpenPages()
    wires = [(connect(pages, link=link), link) for link in links]
    for link in ("ada", "bo"):
        mine = [wire.is_open for wire, of in wires if of == link]
        assert sum(mine) == min(len(mine), MAX_SOCKETS_PER_LINK)
        assert all(mine[-MAX_SOCKETS_PER_LINK:])
    assert all(wire.is_open for wire, link in wires if not link)


def test_every_refusal_is_told_once() -> None:
    """Each refusal is in exactly one line, and two lines are at least a minute apart."""
    clock = FakeClock()
    visits = Visits(Site.of("", port=1), TrustedProxies(()), clock)
    with capture_logs() as told:
        for pause_s, refusal in (
            (0, "malformed"),
            (59, "crowded"),
            (0.5, "crowded"),
            (0.5, "malformed"),
            (30, "crowded"),
        ):
            clock.advance(pause_s)
            visits.count(refusal)
        assert len(told) == 2
        visits.log_refused()
        visits.log_refused()
    line = {"event": "web_requests_refused", "log_level": "warning"}
    assert told == [
        line | {"malformed_count": 1},
        line | {"crowded_count": 2, "malformed_count": 1},
        line | {"crowded_count": 1},
    ]
