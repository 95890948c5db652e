"""The shared base of the local model servers. It listens on 127.0.0.1 and returns errors in OpenAI's form."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING

from aiohttp import web

from rehearsal.errors import RehearsalError
from rehearsal.foreign_requests import refuse_foreign_requests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

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
    """The HTTP listener of one local server, from `open` to `close`. The server that made it calls both."""

    def __init__(self, name: str, *, port: int, cancel_abandoned: bool = False) -> None:
        """`name`: the name of the server in errors. `port`: 0 takes a free port.

        `cancel_abandoned`: cancel an answer when its client disconnects, even before the first byte of the answer.
        """
        self._name = name
        self._port = port
        self._cancel_abandoned = cancel_abandoned
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None

    @property
    def base_url(self) -> str:
        """Return the base URL for OpenAI's client library."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def open(self, routes: Iterable[web.RouteDef]) -> None:
        """Start to listen. Raises `RehearsalError` when the port is taken."""
        app = web.Application(middlewares=[_part_from_lost_clients, refuse_foreign_requests])
        app.add_routes(routes)
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=_SHUTDOWN_S, handler_cancellation=self._cancel_abandoned
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self._port).start()
        except OSError as error:
            await runner.cleanup()
            raise RehearsalError(
                f"The local {self._name} server cannot listen on port {self._port}: {error.strerror}. "
                "Choose another port, or stop the program that uses it."
            ) from error
        self._port = runner.addresses[0][1]
        self._runner = runner

    async def stall(self) -> None:
        """Wait until the server closes."""
        try:
            async with asyncio.timeout(_STALL_S):
                await self._released.wait()
        except TimeoutError:
            return

    async def close(self) -> None:
        """Stop listening and end the running answers. A second call, or a call before `open`, does nothing."""
        self._released.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


class RequestRefusal(StrEnum):
    """The reason for which a request is refused."""

    WRONG_KEY = "wrong_key"
    UNKNOWN_MODEL = "unknown_model"
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"
    BROKEN = "broken"


_ANSWERS = {
    RequestRefusal.WRONG_KEY: (401, "Incorrect API key provided."),
    RequestRefusal.UNKNOWN_MODEL: (404, "The model does not exist."),
    RequestRefusal.RATE_LIMITED: (429, "Rate limit reached."),
    RequestRefusal.REFUSED: (400, "Invalid request."),
    RequestRefusal.BROKEN: (500, "The engine died."),
}


def refusal_response(why: RequestRefusal) -> web.Response:
    status, message = _ANSWERS[why]
    return error_response(status, message)


def error_response(status: int, message: str, *, code: str | None = None) -> web.Response:
    """Return an error in the form of OpenAI's API."""
    return web.json_response(
        {"error": {"message": message, "type": "error", "param": None, "code": code}}, status=status
    )
