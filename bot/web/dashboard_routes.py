"""The addresses of the dashboard: its files, the JSON that its page reads, and the live events.

`login_routes` knows who a browser belongs to, and `bot.dashboard` decides what they may see. Nothing here changes
anything, but which servers the operator admits and refuses.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiohttp import web

from bot.dashboard.access import AccessUnknownError, DashboardUser, Json, NotShownError
from bot.errors import SetupError
from bot.texts.text import Text, sentence_of
from bot.web.connection import Visits, WebConnection
from bot.web.login_routes import LOGIN_PATH, LoginRoutes
from bot.web.page_texts import json_response, page_language
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.dashboard.live import Follower
    from bot.dashboard.service import DashboardService

log = structlog.get_logger()

FILES: Final = {
    "/": ("dashboard.html", "text/html"),
    LOGIN_PATH: ("dashboard.html", "text/html"),
    "/dashboard/dashboard.css": ("dashboard.css", "text/css"),
    "/dashboard/app.js": ("dashboard_app.js", "text/javascript"),
    "/dashboard/dom.js": ("dashboard_dom.js", "text/javascript"),
    "/dashboard/live.js": ("dashboard_live.js", "text/javascript"),
    "/dashboard/events.js": ("dashboard_events.js", "text/javascript"),
    "/dashboard/charts.js": ("dashboard_charts.js", "text/javascript"),
    "/dashboard/history.js": ("dashboard_history.js", "text/javascript"),
    "/dashboard/servers.js": ("dashboard_servers.js", "text/javascript"),
}

# Reading a long session takes a second; a stalled disk ends in its own error before this.
ANSWER_TIMEOUT_S: Final = 45.0
# Reads at the same time, of everybody together: a search uses the same threads as the rooms.
MAX_READS: Final = 2
# Reads of one person that are under way or wait: several pages that are read anew at once.
MAX_READS_OF_ONE_PERSON: Final = 16
# A silent connection is closed by some proxies after half a minute.
HEARTBEAT_S: Final = 15.0
# A page that takes no event for so long is dropped; it connects again.
WRITE_TIMEOUT_S: Final = 10.0
# Open pages with live events. A browser has six connections to one address anyway.
MAX_FEEDS: Final = 64
MAX_FEEDS_OF_ONE_PERSON: Final = 8


class DashboardRoutes:
    """The handlers of one web server. `login`: knows who asks."""

    def __init__(self, dashboard: DashboardService, login: LoginRoutes, visits: Visits) -> None:
        self._dashboard = dashboard
        self._login = login
        self._visits = visits
        self._reads = asyncio.Semaphore(MAX_READS)
        # The reads of each person that are under way or wait.
        self._reading: Counter[int | None] = Counter()
        # The handlers of open pages, and the person of each.
        self.feeds: dict[asyncio.Task[Any], int | None] = {}

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        show = self._dashboard
        reads: dict[str, Callable[[DashboardUser, web.Request], Awaitable[Json]]] = {
            "/api/rooms": lambda user, _: show.rooms(user),
            "/api/rooms/{session}": lambda user, asked: show.room(user, asked.match_info["session"]),
            "/api/sessions": lambda user, asked: show.sessions(user, before=_number(asked.query.get("before"))),
            "/api/sessions/{session}": self._session,
            "/api/sessions/{session}/replies": lambda user, asked: show.replies(user, asked.match_info["session"]),
            "/api/sessions/{session}/replies/{turn:[0-9]{1,9}}": self._reply,
            "/api/servers": lambda user, _: show.servers(user),
            "/api/search": lambda user, asked: show.search(user, asked.query.get("q", "")[:400]),
        }
        app.router.add_get("/api/events", self._events)
        for path, read in reads.items():
            app.router.add_get(path, self._answer(read))
        app.router.add_post("/api/servers", self._answer(self._decide))

    def close(self) -> None:
        """End the live events of every page."""
        for task in self.feeds:
            task.cancel()

    # -- what the page reads ---------------------------------------------------------------------------------------

    def _answer(
        self, read: Callable[[DashboardUser, web.Request], Awaitable[Json]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Return the handler that answers with what `read` returns for the user."""

        async def handle(request: web.Request) -> web.Response:
            user = self._login.user(request)
            if user is None:
                return json_response(request, {"discord": self._dashboard.discord_login}, HTTPStatus.UNAUTHORIZED)
            if self._reading[user.user_id] >= MAX_READS_OF_ONE_PERSON:
                self._visits.count("crowded")
                busy = Text("You are opening too much at a time. Try again in a moment.")
                return json_response(request, {"error": busy}, HTTPStatus.TOO_MANY_REQUESTS)
            self._reading[user.user_id] += 1
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT_S), self._reads:
                    return json_response(request, await read(user, request))
            except NotShownError as error:
                return json_response(request, {"error": sentence_of(error)}, HTTPStatus.NOT_FOUND)
            except SetupError as error:
                return json_response(request, {"error": sentence_of(error)}, HTTPStatus.BAD_REQUEST)
            except (AccessUnknownError, StoreError) as error:
                return json_response(request, {"error": sentence_of(error)}, HTTPStatus.SERVICE_UNAVAILABLE)
            except TimeoutError:
                late = Text("This took too long. Try again.")
                return json_response(request, {"error": late}, HTTPStatus.SERVICE_UNAVAILABLE)
            finally:
                self._reading[user.user_id] -= 1

        return handle

    async def _decide(self, user: DashboardUser, request: web.Request) -> Json:
        asked = await self._login.body(request)
        return await self._dashboard.decide(user, str(asked.get("server", "")), served=asked.get("served") is True)

    def _session(self, user: DashboardUser, request: web.Request) -> Awaitable[Json]:
        first = _number(request.query.get("first"))
        return self._dashboard.session(user, request.match_info["session"], first=None if first is None else int(first))

    def _reply(self, user: DashboardUser, request: web.Request) -> Awaitable[Json]:
        return self._dashboard.reply(user, request.match_info["session"], int(request.match_info["turn"]))

    # -- live events -----------------------------------------------------------------------------------------------

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send server-sent events until the page leaves, is too slow, or is logged out."""
        user = self._login.user(request)
        if user is None:
            return json_response(request, {"discord": self._dashboard.discord_login}, HTTPStatus.UNAUTHORIZED)
        client, pages = self._visits.client(request), self._visits.pages
        if not pages.has_room(client) or not self._has_place(user):
            self._visits.count("crowded")
            crowded = Text("Too many pages are open. Close one, then load this page again.")
            return json_response(request, {"error": crowded}, HTTPStatus.TOO_MANY_REQUESTS)
        connection, task = request.protocol, asyncio.current_task()
        assert isinstance(connection, WebConnection), "made by the server"
        assert task is not None, "in a request's task"
        self.feeds[task] = user.user_id
        pages.opened(connection, client)
        try:
            response = web.StreamResponse()
            response.content_type = "text/event-stream"
            # nginx would gather the events.
            response.headers["X-Accel-Buffering"] = "no"
            await response.prepare(request)
            # Known to be somebody, so that it does not make room for a stranger's connection.
            pages.admitted(connection, f"dashboard {id(task)}")
            # The last event that the browser got; before it got any, the last one in what the page has read.
            known = request.headers.get("Last-Event-ID") or request.query.get("since", "")
            with self._dashboard.follow(user, known, language=page_language(request)) as feed:
                connection.feed = feed
                await self._send_events(request, user, response, feed)
            return response
        finally:
            pages.closed(connection)
            self.feeds.pop(task, None)

    def _has_place(self, user: DashboardUser) -> bool:
        """Return whether one more page of this person gets live events."""
        theirs = sum(person == user.user_id for person in self.feeds.values())
        return theirs < MAX_FEEDS_OF_ONE_PERSON and len(self.feeds) < MAX_FEEDS

    async def _send_events(
        self, request: web.Request, user: DashboardUser, response: web.StreamResponse, feed: Follower
    ) -> None:
        """Send them for as long as `user` is logged in."""
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    event = await feed.next()
            except TimeoutError:
                event = ": still here\n\n"
            # Asked after the wait, so that nothing is sent that happened since.
            if event is None or self._login.user(request) != user:
                return
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await response.write(event.encode("utf-8", "replace"))
            except (ConnectionError, TimeoutError):
                log.info("dashboard_page_lost")
                return


def _number(text: str | None) -> float | None:
    """Return the number, from 0 to less than a million millions; None if it is another, or none."""
    if text is None or len(text) > 20:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < 1e12 else None
