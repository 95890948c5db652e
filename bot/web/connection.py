"""The connections of the web server, each one aiohttp's request handler: which may be opened, which make room, and
which requests are refused.

Strangers reach them: whatever they send makes no traceback in the log, and they are not told which library answers. A
flood of refused requests makes one log line a minute. A request that a page of another site makes is refused; browsers
name the site in the header `Origin`.

An address counts only if a trusted proxy vouches for it, because behind any other proxy all people have one address.
Everywhere else the link counts. Connections that have shown no valid link make room for newer ones, so silent ones lock
nobody out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from aiohttp import web
from aiohttp.hdrs import SEC_WEBSOCKET_PROTOCOL, SERVER

from bot.texts.text import Text
from bot.web.page_texts import json_response

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable, Mapping

    from aiohttp.typedefs import Handler

    from bot.web.security import ClientAddress, Site


LOG_EVERY_S: Final = 60.0


class WebRefusal(StrEnum):
    """Why a request was refused before any link was read."""

    # What came is not HTTP, or too long.
    MALFORMED = "malformed"
    # The web socket was asked for by a page of another origin.
    FOREIGN_PAGE = "foreign_page"
    # Too many pages, reads or logins at once.
    CROWDED = "crowded"


class RefusalCounter:
    """Gathers refusals between two log lines. Callers pass in monotonic seconds."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._told_at = float("-inf")

    def count(self, refusal: str, now: float) -> dict[str, int]:
        """Count a refusal: a `WebRefusal`, or the reason why a link is not accepted. Returns the figures to log, or {}
        within a minute of the last ones.
        """
        self._counts[refusal] += 1
        if now - self._told_at < LOG_EVERY_S:
            return {}
        self._told_at = now
        return self.rest()

    def rest(self) -> dict[str, int]:
        """Return the figures that were not logged yet, and start again from zero."""
        figures = {f"{refusal}_count": count for refusal, count in sorted(self._counts.items())}
        self._counts.clear()
        return figures


def require_own_origin(request: web.Request, site: Site, count: Callable[[str], None]) -> None:
    """Raise `HTTPForbidden`, and `count` the refusal, unless a page of `site` sends this request.

    The answer says which address works: whoever forwards a port or uses another name of the machine reads it.
    """
    if not site.admits(request.headers.get("Origin")):
        count(WebRefusal.FOREIGN_PAGE)
        sentence = Text(
            "My pages work under {origin} only. Open this page there, or set PUBLIC_URL to the address that your "
            "browser shows.",
            origin=site.origin,
        )
        answer = json_response(request, {"error": sentence}, HTTPStatus.FORBIDDEN)
        raise web.HTTPForbidden(text=answer.text, content_type=answer.content_type)


MAX_CONNECTIONS: Final = 200
# A household behind one address: each person has one page, and a page that reconnects has two for a moment.
MAX_SOCKETS_PER_CLIENT: Final = 12
# A page that reconnects leaves its earlier socket, which may take some seconds to end.
MAX_SOCKETS_PER_LINK: Final = 3


def quiet_application(**options: Any) -> web.Application:
    """Make an application for `QuietConnection`s. `options`: of `web.Application`."""
    app = web.Application(middlewares=[_refuse_subprotocols], **options)
    app.on_response_prepare.append(_leave_server_out)
    return app


@web.middleware
async def _refuse_subprotocols(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a websocket of a subprotocol. None of ours has one, and the library logs each that it does not know."""
    if SEC_WEBSOCKET_PROTOCOL in request.headers:
        raise web.HTTPBadRequest
    return await handler(request)


async def _leave_server_out(request: web.Request, response: web.StreamResponse) -> None:
    """Leave out the header in which the library names itself and its version."""
    del request
    response.headers.popall(SERVER, None)


class QuietConnection(web.RequestHandler):
    """aiohttp's request handler, except that it tells nobody what was wrong with a request, and logs no request.

    `on_malformed`: called for each request that is not valid HTTP. `headers`: returns the headers of the answer to it.
    """

    __slots__ = ("_headers", "_on_malformed")

    def __init__(
        self,
        manager: web.Server,
        *,
        loop: asyncio.AbstractEventLoop,
        on_malformed: Callable[[], None],
        headers: Callable[[], Mapping[str, str]] = dict,
        **options: Any,
    ) -> None:
        # Nobody who talks to us compresses anything, and the library logs a traceback for a body that it cannot unpack.
        options |= {"access_log": None, "auto_decompress": False}
        super().__init__(manager, loop=loop, **options)
        self._headers = headers
        self._on_malformed = on_malformed

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that failed. The library's own answer to an invalid request quotes it, in the log too."""
        if isinstance(exc, ConnectionError):
            # They have hung up, so nobody reads the answer. The library would log a traceback for each.
            response: web.StreamResponse = web.Response(status=status)
            response.force_close()
        elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            response = super().handle_error(request, status, exc, message)
        else:
            self._on_malformed()
            response = web.Response(status=status, text="This is not a valid request.\n")
            response.force_close()
        # No application sees the answer to an invalid request, and an empty value keeps the library from its own.
        response.headers.update({**self._headers(), SERVER: "", "Connection": "close"})
        return response


class Closable(Protocol):
    """A connection that can be cut off."""

    @property
    def is_open(self) -> bool:
        """Return whether it still holds a socket. One that is closing does, for as long as its reader likes."""

    def cut(self) -> None:
        """Close it at once, without waiting for the other side."""


@dataclass(slots=True)
class _Page:
    """An open web socket. `group`: the address that a trusted proxy vouches for, or None. `link`: once admitted."""

    group: Hashable | None
    link: str = ""


class OpenPages:
    """The connections of one server. Not thread-safe."""

    def __init__(self) -> None:
        # Both in the order in which they were opened.
        self._connections: dict[Closable, None] = {}
        self._pages: dict[Closable, _Page] = {}

    def connected(self, connection: Closable) -> None:
        """Take a new connection. If there are too many, cut off the oldest one that has shown no valid link."""
        # Some have ended since the last call.
        self._connections = {each: None for each in self._connections if each.is_open}
        self._connections[connection] = None
        if len(self._connections) > MAX_CONNECTIONS:
            silent = (each for each in self._connections if each not in self._pages or not self._pages[each].link)
            self._cut(next(silent, connection))

    def has_room(self, client: ClientAddress) -> bool:
        """Return whether this client may open one more web socket."""
        group = client.group
        return group is None or Counter(page.group for page in self._pages.values())[group] < MAX_SOCKETS_PER_CLIENT

    def opened(self, connection: Closable, client: ClientAddress) -> None:
        """Note that a connection has become a web socket."""
        self._pages[connection] = _Page(client.group)

    def admitted(self, connection: Closable, link: str) -> None:
        """Note that the page has shown a valid link. Earlier sockets of the link are cut off if they are too many."""
        self._pages[connection].link = link
        same = [each for each, page in self._pages.items() if page.link == link and each is not connection]
        for earlier in same[: max(0, len(same) + 1 - MAX_SOCKETS_PER_LINK)]:
            earlier.cut()

    def closed(self, connection: Closable) -> None:
        """Note that a web socket has ended."""
        del self._pages[connection]

    def cut_all(self) -> None:
        """Cut off every connection."""
        for connection in list(self._connections):
            self._cut(connection)

    def _cut(self, connection: Closable) -> None:
        del self._connections[connection]
        connection.cut()


class WebConnection(QuietConnection):
    """A connection that registers itself with `pages`, and can be cut off. `options`: of `QuietConnection`."""

    __slots__ = ("_on_lost", "_pages", "_wire")

    def __init__(
        self,
        manager: web.Server,
        *,
        loop: asyncio.AbstractEventLoop,
        pages: OpenPages,
        **options: Any,
    ) -> None:
        super().__init__(manager, loop=loop, **options)
        self._pages = pages
        # Until the connection is lost. The library lets go of its own when it begins to close.
        self._wire: asyncio.Transport | None = None
        self._on_lost: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._wire = cast("asyncio.Transport", transport)
        self._pages.connected(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._wire = None
        self._on_lost()
        super().connection_lost(exc)

    def when_lost(self, on_lost: Callable[[], None]) -> None:
        """Call `on_lost` when the connection is over. A handler that only writes does not notice it for long."""
        self._on_lost = on_lost

    @property
    def is_open(self) -> bool:
        return self._wire is not None

    def cut(self) -> None:
        if self._wire is not None:
            self._wire.abort()
