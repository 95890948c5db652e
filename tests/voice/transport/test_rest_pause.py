"""The pause of all requests ends with the request that began it, however that ends."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, cast

import discord
import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from voice.transport.private.rest_pause import LONGEST_WAIT_S, RetryTimes, lift_pauses_of_cancelled_requests


class Route(NamedTuple):
    """What is asked of Discord."""

    url: str
    method: str = "PATCH"


class Http:
    """discord.py's HTTP client in short: a refused request holds the others back until it has waited."""

    def __init__(self) -> None:
        self._global_over = asyncio.Event()
        self._global_over.set()
        self.waited = asyncio.Event()
        self.sent: list[str] = []
        self.max_ratelimit_timeout: float | None = None

    async def request(self, route: Route, *, refused: bool = False) -> str:
        """Send a request once nothing holds it back."""
        await self._global_over.wait()
        if refused:
            self._global_over.clear()
            await self.waited.wait()
            self._global_over.set()
        self.sent.append(route.url)
        return route.url


async def test_a_pause_ends_with_the_request_that_began_it() -> None:
    """It is lifted when that request is cancelled, and not when one that is held back is."""
    http = Http()
    lift_pauses_of_cancelled_requests(cast("Any", http), RetryTimes())
    send: Any = http.request
    assert await send(Route("before")) == "before"
    refused = asyncio.create_task(send(Route("refused"), refused=True), name="refused")
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(send(Route(name)), name=name) for name in ("impatient", "patient")]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait({waiting[0]})
    assert not http._global_over.is_set()
    refused.cancel()
    await asyncio.wait({refused})
    assert await waiting[1] == "patient"
    assert http.sent == ["before", "patient"]


def test_no_request_is_sent_before_discord_wants_it() -> None:
    """Of the same method and path, whatever became of the one that was refused; also if Discord does not say when."""
    now = 100.0
    times = RetryTimes(monotonic=lambda: now)
    me = "https://discord.com/api/v10/guilds/1/members/@me"
    times.refused("PATCH", f"{me}?reason=x", "7.5")
    assert (times.left_s("PATCH", me), times.left_s("GET", me), times.left_s("PATCH", f"{me}/x")) == (7.5, 0.0, 0.0)
    now = 108.0
    assert times.left_s("PATCH", me) == 0.0
    times.refused("PATCH", me, "")
    assert times.left_s("PATCH", me) == 0.0


async def test_a_wait_that_is_too_long_is_not_begun() -> None:
    """Neither by discord.py, which asks this attribute, nor before the next request of its kind."""
    http, times = Http(), RetryTimes()
    lift_pauses_of_cancelled_requests(cast("Any", http), times)
    assert http.max_ratelimit_timeout == LONGEST_WAIT_S
    times.refused("PATCH", "me", str(LONGEST_WAIT_S + 60.0))
    with pytest.raises(discord.RateLimited):
        await http.request(cast("Any", Route("me")))
    assert http.sent == []


async def test_the_time_outlives_the_request_that_was_given_up() -> None:
    """discord.py's own client tells of each answer by its trace."""
    times, answers = RetryTimes(), iter((web.Response(status=429, headers={"Retry-After": "60"}), web.Response()))

    async def answered(_: web.Request) -> web.StreamResponse:
        return next(answers)

    app = web.Application()
    app.router.add_patch("/me", answered)
    async with TestServer(app) as server, ClientSession(trace_configs=[times.trace]) as http:
        async with http.patch(server.make_url("/me")):
            pass
        assert 50.0 < times.left_s("PATCH", str(server.make_url("/me"))) <= 60.0
