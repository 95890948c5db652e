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
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

import structlog
from aiohttp import web
from aiohttp.hdrs import SEC_WEBSOCKET_PROTOCOL, SERVER

from bot.texts.text import Text
from bot.web.page_texts import json_response
from bot.web.security import FORWARDED_FOR, ClientAddress, Site, TrustedProxies, security_headers

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Hashable

    from aiohttp.typedefs import Handler

    from bot.clock import Clock
    from bot.dashboard.live import Follower


log = structlog.get_logger()

LOG_EVERY_S: Final = 60.0


class Visits:
    """Who asks one server: their addresses, their connections, and how many requests are refused. Not thread-safe.

    `site`: the server's address.
    """

    def __init__(self, site: Site, proxies: TrustedProxies, clock: Clock) -> None:
        self.site = site
        self.pages = OpenPages()
        self.clock = clock
        self._proxies = proxies
        self._refused: Counter[str] = Counter()
        self._logged_at = float("-inf")

    def client(self, request: web.Request) -> ClientAddress:
        return self._proxies.client(request.remote or "", request.headers.getall(FORWARDED_FOR, []))

    def count(self, refusal: str) -> None:
        """Count a refused request, and log the figures at most once a minute. `refusal`: `malformed` (no HTTP, or too
        long), `foreign_page` (of another origin), `crowded` (too many pages, reads or logins at once), or the reason
        why a link is not accepted.
        """
        self._refused[refusal] += 1
        if self.clock.monotonic() - self._logged_at >= LOG_EVERY_S:
            self._logged_at = self.clock.monotonic()
            self.log_refused()

    def log_refused(self) -> None:
        """Log the figures that were not logged yet, and start again from zero."""
        if figures := {f"{refusal}_count": count for refusal, count in sorted(self._refused.items())}:
            log.warning("web_requests_refused", **figures)
        self._refused.clear()

    def require_own_origin(self, request: web.Request) -> None:
        """Raise `HTTPForbidden`, and count the refusal, unless a page of this server sends the request.

        The answer says which address works: whoever forwards a port or uses another name of the machine reads it.
        """
        if not self.site.admits(request.headers.get("Origin")):
            self.count("foreign_page")
            sentence = Text(
                "My pages work only at {origin}. Open this page there. If this address is wrong, the "
                "owner of this bot must change PUBLIC_URL.",
                origin=self.site.origin,
            )
            answer = json_response(request, {"error": sentence}, HTTPStatus.FORBIDDEN)
            raise web.HTTPForbidden(text=answer.text, content_type=answer.content_type)


MAX_CONNECTIONS: Final = 200
# A household behind one address: each person has one page, and a page that reconnects has two for a moment.
MAX_SOCKETS_PER_CLIENT: Final = 12
# A page that reconnects leaves its earlier socket, which may take some seconds to end.
MAX_SOCKETS_PER_LINK: Final = 3


@web.middleware
async def refuse_subprotocols(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a websocket of a subprotocol. None of ours has one, and the library logs each that it does not know."""
    if SEC_WEBSOCKET_PROTOCOL in request.headers:
        raise web.HTTPBadRequest
    return await handler(request)


@dataclass(slots=True)
class _Page:
    """An open web socket. `group`: the address that a trusted proxy vouches for, or None. `link`: once admitted."""

    group: Hashable | None
    link: str = ""


class OpenPages:
    """The connections of one server. Not thread-safe."""

    def __init__(self) -> None:
        # Both in the order in which they were opened.
        self._connections: dict[WebConnection, None] = {}
        self._pages: dict[WebConnection, _Page] = {}

    def connected(self, connection: WebConnection) -> None:
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

    def opened(self, connection: WebConnection, client: ClientAddress) -> None:
        """Note that a connection has become a web socket."""
        self._pages[connection] = _Page(client.group)

    def admitted(self, connection: WebConnection, link: str) -> None:
        """Note that the page has shown a valid link. Earlier sockets of the link are cut off if they are too many."""
        self._pages[connection].link = link
        same = [each for each, page in self._pages.items() if page.link == link and each is not connection]
        for earlier in same[: max(0, len(same) + 1 - MAX_SOCKETS_PER_LINK)]:
            earlier.cut()

    def closed(self, connection: WebConnection) -> None:
        """Note that a web socket has ended."""
        del self._pages[connection]

    def cut_all(self) -> None:
        """Cut off every connection."""
        for connection in list(self._connections):
            self._cut(connection)

    def _cut(self, connection: WebConnection) -> None:
        del self._connections[connection]
        connection.cut()


class WebConnection(web.RequestHandler):
    """aiohttp's request handler, except that it tells nobody what was wrong with a request, logs no request, and can be
    cut off. It registers itself with `visits`.
    """

    __slots__ = ("_visits", "_wire", "feed")

    def __init__(self, manager: web.Server, *, loop: asyncio.AbstractEventLoop, visits: Visits, **options: Any) -> None:
        # Nobody who talks to us compresses anything, and the library logs a traceback for a body that it cannot unpack.
        options |= {"access_log": None, "auto_decompress": False}
        super().__init__(manager, loop=loop, **options)
        self._visits = visits
        # Until the connection is lost. The library lets go of its own when it begins to close.
        self._wire: asyncio.Transport | None = None
        # The live events that it shows. A handler that only writes does not notice for long that nobody reads them.
        self.feed: Follower | None = None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that failed. The library's own answer to an invalid request quotes it, in the log too."""
        response: web.StreamResponse = web.Response(status=status, text="This is not a valid request.\n")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(exc, ConnectionError):
            response = super().handle_error(request, status, exc, message)
        elif not isinstance(exc, ConnectionError):
            self._visits.count("malformed")
        # Who has hung up reads no answer. The library would log a traceback for each.
        response.force_close()
        # No application sees the answer to an invalid request, and an empty value keeps the library from its own.
        response.headers.update({**security_headers(self._visits.site), SERVER: "", "Connection": "close"})
        return response

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._wire = cast("asyncio.Transport", transport)
        self._visits.pages.connected(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._wire = None
        if self.feed is not None:
            self.feed.end()
        super().connection_lost(exc)

    @property
    def is_open(self) -> bool:
        """Return whether it still holds a socket. One that is closing does, for as long as its reader likes."""
        return self._wire is not None

    def cut(self) -> None:
        """Close it at once, without waiting for the other side."""
        if self._wire is not None:
            self._wire.abort()
