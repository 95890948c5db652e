"""Ends discord.py's pause of all requests if the request that began it is cancelled.

When Discord's limit over all routes is reached, discord.py holds every request back, and the request that was refused
lifts that when it has waited. If that request is given up in the meantime, because its time is up, nobody does: no
request is sent any more until the process ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discord.http import HTTPClient, Route


class _Pause(asyncio.Event):
    """discord.py's event, which is cleared while nothing may be sent. Knows which task has cleared it."""

    def __init__(self) -> None:
        super().__init__()
        self.set()
        self._by: asyncio.Task[Any] | None = None

    def clear(self) -> None:
        super().clear()
        self._by = asyncio.current_task()

    def give_up(self) -> None:
        """Let the others go on if it was this task that made them wait. Who is too early begins another pause."""
        if not self.is_set() and self._by is asyncio.current_task():
            self.set()


def lift_pauses_of_cancelled_requests(http: HTTPClient) -> None:
    """Change this client so that a cancelled request leaves no pause behind."""
    request = http.request

    async def requested(route: Route, **options: Any) -> Any:
        # discord.py makes its event when it logs in, just before its first request.
        if not isinstance(http._global_over, _Pause):
            http._global_over = _Pause()
        pause = http._global_over
        try:
            return await request(route, **options)
        except asyncio.CancelledError:
            pause.give_up()
            raise

    http.request = requested  # type: ignore[method-assign]
