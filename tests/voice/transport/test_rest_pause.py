"""The pause of all requests ends with the request that began it, however that ends."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from voice.transport.private.rest_pause import lift_pauses_of_cancelled_requests


class Http:
    """discord.py's HTTP client in short: a refused request holds the others back until it has waited."""

    def __init__(self) -> None:
        self._global_over = asyncio.Event()
        self._global_over.set()
        self.waited = asyncio.Event()
        self.sent: list[str] = []

    async def request(self, route: str, *, refused: bool = False) -> str:
        """Send a request once nothing holds it back."""
        await self._global_over.wait()
        if refused:
            self._global_over.clear()
            await self.waited.wait()
            self._global_over.set()
        self.sent.append(route)
        return route


async def test_a_pause_ends_with_the_request_that_began_it() -> None:
    """It is lifted when that request is cancelled, and not when one that is held back is."""
    http = Http()
    lift_pauses_of_cancelled_requests(cast("Any", http))
    send: Any = http.request
    assert await send("before") == "before"
    refused = asyncio.create_task(send("refused", refused=True), name="refused")
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(send(name), name=name) for name in ("impatient", "patient")]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait({waiting[0]})
    assert not http._global_over.is_set()
    refused.cancel()
    await asyncio.wait({refused})
    assert await waiting[1] == "patient"
    assert http.sent == ["before", "patient"]
