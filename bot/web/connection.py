"""One connection of the web server, as aiohttp's request handler."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from bot.web.open_pages import OpenPages


class WebConnection(web.RequestHandler):
    """A connection that registers itself with `pages`, can be cut off, and tells nobody what was wrong with a request.

    `headers`: returns the headers of every response. `on_malformed`: called for each request that is not valid HTTP.
    """

    __slots__ = ("_headers", "_on_lost", "_on_malformed", "_pages", "_wire")

    def __init__(
        self,
        manager: web.Server,
        *,
        loop: asyncio.AbstractEventLoop,
        pages: OpenPages[WebConnection],
        headers: Callable[[], Mapping[str, str]],
        on_malformed: Callable[[], None],
        **options: Any,
    ) -> None:
        super().__init__(manager, loop=loop, **options)
        self._pages = pages
        self._headers = headers
        self._on_malformed = on_malformed
        # Until the connection is lost. The library lets go of its own when it begins to close.
        self._wire: asyncio.Transport | None = None
        self._on_lost: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol.connection_made`."""
        super().connection_made(transport)
        self._wire = cast("asyncio.Transport", transport)
        self._pages.connected(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """See `asyncio.Protocol.connection_lost`."""
        self._wire = None
        self._on_lost()
        super().connection_lost(exc)

    def when_lost(self, on_lost: Callable[[], None]) -> None:
        """Call `on_lost` when the connection is over. A handler that only writes does not notice it for long."""
        self._on_lost = on_lost

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
        # An empty value keeps the library from naming itself and its version.
        response.headers.update({**self._headers(), "Server": "", "Connection": "close"})
        return response

    @property
    def is_open(self) -> bool:
        """See `Closable.is_open`."""
        return self._wire is not None

    def cut(self) -> None:
        """See `Closable.cut`."""
        if self._wire is not None:
            self._wire.abort()
