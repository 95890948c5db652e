"""Ends discord.py's pause of all requests if the request that began it is cancelled, and sends no request before the
time that Discord has named.

When Discord's limit over all routes is reached, discord.py holds every request back, and the request that was refused
lifts that when it has waited. If that request is given up in the meantime, because its time is up, nobody does: no
request is sent any more until the process ends.

When Discord refuses a request and says when the next may come, discord.py waits for that itself, and forgets it if the
request is given up. The next one would be refused again, and too many of those bar the machine from Discord. A wait
that is longer than a call may take is not begun: the call fails at once with `discord.RateLimited`.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import aiohttp
import discord
import yarl

if TYPE_CHECKING:
    from collections.abc import Callable

    from discord.http import HTTPClient, Route


# Discord lets five messages through in five seconds, and discord.py counts them: such a wait is ordinary.
LONGEST_WAIT_S = 6.0


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


class RetryTimes:
    """When Discord takes the next request of each kind, as it said when it refused one. Give `trace` to the client."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._times: dict[tuple[str, str], float] = {}
        self.trace = aiohttp.TraceConfig()
        self.trace.on_request_end.append(self._on_answer)

    async def _on_answer(self, _session: object, _context: object, ended: aiohttp.TraceRequestEndParams) -> None:
        # The limit over all routes says nothing of this kind.
        is_global = "X-RateLimit-Global" in ended.response.headers
        if ended.response.status == HTTPStatus.TOO_MANY_REQUESTS and not is_global:
            self.refused(ended.method, str(ended.url), ended.response.headers.get("Retry-After", ""))

    def refused(self, method: str, url: str, retry_after: str) -> None:
        """Note that a request was refused. `retry_after`: Discord's header, in seconds."""
        now = self._monotonic()
        self._times = {kind: at for kind, at in self._times.items() if at > now}
        with suppress(ValueError):
            self._times[method, _path(url)] = now + float(retry_after)

    def left_s(self, method: str, url: str) -> float:
        """Return for how many seconds Discord wants no such request."""
        return max(0.0, self._times.get((method, _path(url)), 0.0) - self._monotonic())


def _path(url: str) -> str:
    return yarl.URL(url).path


def lift_pauses_of_cancelled_requests(http: HTTPClient, times: RetryTimes) -> None:
    """Change this client so that a cancelled request leaves no pause behind, none is sent before its time, and none
    waits for longer than `LONGEST_WAIT_S` for that.
    """
    request = http.request
    http.max_ratelimit_timeout = LONGEST_WAIT_S

    async def requested(route: Route, **options: Any) -> Any:
        # discord.py makes its event when it logs in, just before its first request.
        if not isinstance(http._global_over, _Pause):
            http._global_over = _Pause()
        pause = http._global_over
        if (left_s := times.left_s(route.method, route.url)) > LONGEST_WAIT_S:
            raise discord.RateLimited(left_s)
        await asyncio.sleep(left_s)
        try:
            return await request(route, **options)
        except asyncio.CancelledError:
            pause.give_up()
            raise

    http.request = requested  # type: ignore[method-assign]
