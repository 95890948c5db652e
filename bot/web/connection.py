"""One connection of the web server, as aiohttp's request handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    import asyncio

    from bot.web.open_pages import OpenPages


class WebConnection(web.RequestHandler):
    """A connection that registers itself with `pages` and can be cut off."""

    __slots__ = ("_lost", "_pages")

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
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol.connection_made`."""
        super().connection_made(transport)
        self._pages.connected(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """See `asyncio.Protocol.connection_lost`."""
        self._lost = True
        super().connection_lost(exc)

    @property
    def is_open(self) -> bool:
        """See `Closable.is_open`."""
        return not self._lost and self.transport is not None and not self.transport.is_closing()

    def cut(self) -> None:
        """See `Closable.cut`."""
        if self.transport is not None:
            self.transport.abort()
