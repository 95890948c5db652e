"""A server on this machine that takes webhooks, or does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web


class WebhookReceiver:
    """What came, with its headers. `status`: what it answers; None: it never does. A redirect leads back here."""

    def __init__(self) -> None:
        self.status: int | None = 200
        self.taken: list[tuple[Mapping[str, str], bytes]] = []
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/take"

    async def take(self, request: web.Request) -> web.Response:
        """Keep a request, and answer it."""
        self.taken.append((request.headers, await request.read()))
        if self.status is None:
            await asyncio.Event().wait()
        return web.Response(status=self.status or 200, headers={"Location": "/elsewhere"})


@asynccontextmanager
async def receiving() -> AsyncIterator[WebhookReceiver]:
    """Open a receiver on a free port."""
    receiver, app = WebhookReceiver(), web.Application(client_max_size=10_000_000)
    app.router.add_route("*", "/{path:.*}", receiver.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        receiver.port = runner.addresses[0][1]
        yield receiver
    finally:
        await runner.cleanup()
