"""One connection of the web server, as aiohttp's request handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from bot.web.quiet_connection import QuietConnection

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from aiohttp import web

    from bot.web.open_pages import OpenPages


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
