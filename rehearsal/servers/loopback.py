"""The shared base of the local model servers. It listens on 127.0.0.1 and returns errors in OpenAI's form."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self

from aiohttp import web

from rehearsal.foreign_requests import HAS_PAGE, refuse_foreign_requests

# When the server closes, running answers may take this long to end.
_SHUTDOWN_S = 1.0
# A stalled answer never continues. It ends by the client's timeout, or when the server ends it after this time.
_STALL_S = 120.0


@web.middleware
async def _part_from_lost_clients(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """End a request whose client hung up in the middle of it: a call that was given up is no fault of the server."""
    try:
        return await handler(request)
    except ConnectionResetError:
        if request.transport is not None:
            raise
        return web.Response(status=400)


class LoopbackServer:
    """The base of a local server: an HTTP listener on a free port of 127.0.0.1.

    `cancels_abandoned`: cancel an answer when its client disconnects, even before the first byte of the answer.
    `has_page`: it answers a page of its own in a browser.
    *Ownership*: an async context manager. It owns its socket and the running answers, and ends both on exit.
    """

    def __init__(
        self, routes: Iterable[web.RouteDef], *, cancels_abandoned: bool = False, has_page: bool = False
    ) -> None:
        self._routes = routes
        self._has_page = has_page
        self._cancels_abandoned = cancels_abandoned
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def base_url(self) -> str:
        """Return the base URL for OpenAI's client library: the value of a setting such as `llm.base_url`."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[_part_from_lost_clients, refuse_foreign_requests])
        app[HAS_PAGE] = self._has_page
        app.add_routes(self._routes)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=_SHUTDOWN_S, handler_cancellation=self._cancels_abandoned
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._released.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def stall(self) -> None:
        """Wait until the server closes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_STALL_S):
                await self._released.wait()


# By the mode of a server that refuses every request.
_REFUSALS = {
    "wrong_key": (401, "Incorrect API key provided."),
    "unknown_model": (404, "The model does not exist."),
    "rate_limited": (429, "Rate limit reached."),
    "refused": (400, "Invalid request."),
    "broken": (500, "The engine died."),
}


def refusal_response(mode: str) -> web.Response | None:
    """Return the error with which a server in this mode refuses every request, or None."""
    return error_response(*_REFUSALS[mode]) if mode in _REFUSALS else None


def error_response(status: int, message: str, *, code: str | None = None) -> web.Response:
    """Return an error in the form of OpenAI's API."""
    return web.json_response(
        {"error": {"message": message, "type": "error", "param": None, "code": code}}, status=status
    )
