"""One connection of the web server, as aiohttp's request handler. Strangers reach it: whatever they send makes no
traceback in the log, and they are not told which library answers.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web
from aiohttp.hdrs import SEC_WEBSOCKET_PROTOCOL, SERVER

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from aiohttp.typedefs import Handler

    from bot.web.open_pages import OpenPages


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


class WebConnection(QuietConnection):
    """A connection that registers itself with `pages`, and can be cut off. `options`: of `QuietConnection`."""

    __slots__ = ("_on_lost", "_pages", "_wire")

    def __init__(
        self,
        manager: web.Server,
        *,
        loop: asyncio.AbstractEventLoop,
        pages: OpenPages[WebConnection],
        **options: Any,
    ) -> None:
        super().__init__(manager, loop=loop, **options)
        self._pages = pages
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

    @property
    def is_open(self) -> bool:
        """See `Closable.is_open`."""
        return self._wire is not None

    def cut(self) -> None:
        """See `Closable.cut`."""
        if self._wire is not None:
            self._wire.abort()
