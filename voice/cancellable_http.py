"""An HTTP client whose requests may be cancelled at any moment.

httpcore2 2.16 loses the socket of a connection whose request is cancelled during the TLS handshake: it stays open until
Python's garbage collector happens to find it. Answers that are prepared ahead and given up do that every few minutes.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import httpx2
import structlog

_log = structlog.get_logger()

# After so long a request is under way, or its connection has a limit of its own. Cancelling it then loses nothing.
UNDER_WAY_S: Final = 0.5


class CancellableHttpClient(httpx2.AsyncClient):
    """A request that is cancelled at its very beginning ends once it is under way, at the latest `UNDER_WAY_S` after it
    began. Who cancelled it does not wait for that.

    *Ownership*: it owns these endings; `aclose` waits for them.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._endings: set[asyncio.Task[None]] = set()

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """See `httpx2.AsyncClient.send`."""
        loop = asyncio.get_running_loop()
        under_way_at = loop.time() + UNDER_WAY_S
        sending = asyncio.create_task(super().send(request, **options), name="http-request")
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            ending = asyncio.create_task(_end(sending, under_way_at), name="http-request-end")
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
            raise

    async def aclose(self) -> None:
        """Close all connections, after those that are being given up."""
        if self._endings:
            await asyncio.wait(self._endings)
        await super().aclose()


async def _end(sending: asyncio.Task[httpx2.Response], at: float) -> None:
    """End a request that nobody waits for, at this time of the event loop or when it has its answer."""
    await asyncio.wait({sending}, timeout=max(0.0, at - asyncio.get_running_loop().time()))
    sending.cancel()
    [answer] = await asyncio.gather(sending, return_exceptions=True)
    if isinstance(answer, httpx2.Response):
        try:
            await answer.aclose()
        except Exception:  # noqa: BLE001 - whoever made the request is gone
            _log.exception("http_answer_not_closed")
