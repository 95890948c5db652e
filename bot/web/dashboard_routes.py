"""The addresses of the dashboard: its files, login, the JSON that its page reads, and the live events.

What a browser may see is decided by `bot.dashboard`; here is decided only who it is. Requests that change something
must come from our own page.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiohttp import web

from bot.texts.text import Text, all_in_language, sentence_of
from bot.web.connection import WebConnection
from bot.web.dashboard_port import LoginRefusedError, NotShownError
from bot.web.fair_reads import FairReads, TooManyReadsError
from bot.web.login_cookies import LOGIN, PENDING_LOGIN, PENDING_LOGIN_S, LoginCookies
from bot.web.login_tries import LoginTries
from bot.web.page_language import page_language
from bot.web.refusals import WebRefusal
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.web.dashboard_port import Dashboard, Json, LiveFeed
    from bot.web.open_pages import OpenPages
    from bot.web.security import ClientAddress, Site
    from bot.web.viewer import Logins, Viewer

log = structlog.get_logger()

LOGIN_PATH: Final = "/login"
FILES: Final = {
    "/": ("dashboard.html", "text/html"),
    LOGIN_PATH: ("dashboard.html", "text/html"),
    "/dashboard/dashboard.css": ("dashboard.css", "text/css"),
    "/dashboard/app.js": ("dashboard_app.js", "text/javascript"),
    "/dashboard/dom.js": ("dashboard_dom.js", "text/javascript"),
    "/dashboard/live.js": ("dashboard_live.js", "text/javascript"),
    "/dashboard/charts.js": ("dashboard_charts.js", "text/javascript"),
    "/dashboard/history.js": ("dashboard_history.js", "text/javascript"),
}

LINK_USED: Final = Text("This login link has been used already, or the bot was started again since.")
# A login request is one short JSON object.
MAX_BODY_BYTES: Final = 4_096
BODY_TIMEOUT_S: Final = 10.0
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
    """The dashboard's handlers on one web server. `site`: returns its address. `count`: counts a refusal. `monotonic`:
    returns seconds.
    """

    def __init__(
        self,
        dashboard: Dashboard,
        logins: Logins,
        *,
        site: Callable[[], Site],
        pages: OpenPages[WebConnection],
        client: Callable[[web.Request], ClientAddress],
        count: Callable[[str], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._dashboard = dashboard
        self._logins = logins
        self._site = site
        self._pages = pages
        self._client = client
        self._count = count
        self._monotonic = monotonic
        self._cookies = LoginCookies(site)
        self._tries = LoginTries()
        self._reads = FairReads(MAX_READS, most=MAX_READS_OF_ONE_PERSON)
        # The handlers of open pages, and the person of each.
        self._feeds: dict[asyncio.Task[Any], int | None] = {}

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        routes = app.router
        routes.add_get("/api/me", self._me)
        routes.add_post("/api/login", self._log_in)
        routes.add_post("/api/login/discord", self._begin_discord)
        routes.add_post("/api/login/discord/back", self._back_from_discord)
        routes.add_post("/api/logout", self._log_out)
        routes.add_get("/api/events", self._events)
        routes.add_get("/api/rooms", self._answer(lambda viewer, _: self._dashboard.rooms(viewer)))
        routes.add_get("/api/rooms/{session}", self._answer(self._room))
        routes.add_get("/api/sessions", self._answer(self._sessions))
        routes.add_get("/api/sessions/{session}", self._answer(self._session))
        routes.add_get("/api/sessions/{session}/replies", self._answer(self._replies))
        routes.add_get("/api/sessions/{session}/replies/{turn}", self._answer(self._reply))
        routes.add_get("/api/search", self._answer(self._search))

    def close(self) -> None:
        """End the live events of every page."""
        for task in self._feeds:
            task.cancel()

    # -- login ----------------------------------------------------------------------------------------------------

    async def _me(self, request: web.Request) -> web.Response:
        viewer = self._viewer(request)
        if viewer is None:
            # No error: a browser writes those into its console.
            return _json(request, {"discord": self._dashboard.discord_login})
        shards = self._dashboard.shards if viewer.is_operator else ""
        return _json(request, {"name": viewer.name, "operator": viewer.is_operator, "shards": shards})

    async def _log_in(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        cookie = self._logins.redeem(str(body.get("token", "")), instead_of=self._cookies.read(request, LOGIN))
        if cookie is None:
            self._count("login_link")
            return _json(request, {"error": LINK_USED}, 403)
        log.info("dashboard_login", how="link")
        return self._logged_in(request, cookie)

    async def _begin_discord(self, request: web.Request) -> web.Response:
        await self._body(request)
        try:
            # One of our own addresses, as `_body` has checked: the one with the browser's cookies.
            begun = self._dashboard.start_login(f"{request.headers['Origin']}{LOGIN_PATH}")
        except LoginRefusedError as error:
            return _json(request, {"error": sentence_of(error)}, 403)
        response = _json(request, {"url": begun.url})
        self._cookies.write(response, PENDING_LOGIN, begun.proof, max_age=PENDING_LOGIN_S)
        return response

    async def _back_from_discord(self, request: web.Request) -> web.Response:
        """Log in the browser that Discord sent back.

        The page asks for this by itself: browsers send no strict cookie with the way back from another site.
        """
        body = await self._body(request)
        if not self._tries.allows(self._client(request).group, self._monotonic()):
            self._count(WebRefusal.CROWDED)
            return _json(request, {"error": Text("Too many people log in now. Try again in a minute.")}, 429)
        proof = self._cookies.read(request, PENDING_LOGIN)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                state, code = str(body.get("state", "")), str(body.get("code", ""))
                viewer = await self._dashboard.finish_login(proof, state, code)
        except LoginRefusedError as error:
            self._count("discord_login")
            response = _json(request, {"error": sentence_of(error)}, 403)
            self._cookies.drop(response, PENDING_LOGIN)
            return response
        except TimeoutError:
            return _json(request, {"error": Text("Discord did not answer in time. Try again.")}, 503)
        log.info("dashboard_login", how="discord", user_id=viewer.user_id)
        cookie = self._logins.log_in(viewer, instead_of=self._cookies.read(request, LOGIN))
        response = self._logged_in(request, cookie)
        self._cookies.drop(response, PENDING_LOGIN)
        return response

    async def _log_out(self, request: web.Request) -> web.Response:
        await self._body(request)
        self._logins.log_out(self._cookies.read(request, LOGIN))
        response = _json(request, {})
        self._cookies.drop(response, LOGIN)
        return response

    def _logged_in(self, request: web.Request, cookie: str) -> web.Response:
        response = _json(request, {})
        self._cookies.write(response, LOGIN, cookie)
        return response

    def _viewer(self, request: web.Request) -> Viewer | None:
        return self._logins.viewer(self._cookies.read(request, LOGIN))

    async def _body(self, request: web.Request) -> Json:
        """Return the JSON object of a request of our own page. Raises HTTP errors."""
        if not self._site().admits(request.headers.get("Origin")):
            self._count(WebRefusal.FOREIGN_PAGE)
            raise web.HTTPForbidden(text="This page may not talk to me: its address is not web.public_url.")
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                body = json.loads(await request.text())
        except (TimeoutError, ValueError, RecursionError):
            raise web.HTTPBadRequest(text="This is not a valid request.") from None
        if not isinstance(body, dict):
            raise web.HTTPBadRequest(text="This is not a valid request.")
        return body

    # -- what the page reads ---------------------------------------------------------------------------------------

    def _answer(
        self, read: Callable[[Viewer, web.Request], Awaitable[Json]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Return the handler that answers with what `read` returns for the viewer."""

        async def handle(request: web.Request) -> web.Response:
            viewer = self._viewer(request)
            if viewer is None:
                return _json(request, {"discord": self._dashboard.discord_login}, HTTPStatus.UNAUTHORIZED)
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT_S), self._reads.read(viewer.user_id):
                    return _json(request, await read(viewer, request))
            except NotShownError as error:
                return _json(request, {"error": sentence_of(error)}, HTTPStatus.NOT_FOUND)
            except StoreError as error:
                return _json(request, {"error": sentence_of(error)}, HTTPStatus.SERVICE_UNAVAILABLE)
            except TooManyReadsError:
                self._count(WebRefusal.CROWDED)
                busy = Text("You are reading too much at once. Try again in a moment.")
                return _json(request, {"error": busy}, HTTPStatus.TOO_MANY_REQUESTS)
            except TimeoutError:
                return _json(
                    request, {"error": Text("Reading this took too long. Try again.")}, HTTPStatus.SERVICE_UNAVAILABLE
                )

        return handle

    def _room(self, viewer: Viewer, request: web.Request) -> Awaitable[Json]:
        return self._dashboard.room(viewer, request.match_info["session"])

    def _sessions(self, viewer: Viewer, request: web.Request) -> Awaitable[Json]:
        return self._dashboard.sessions(viewer, before=_number(request.query.get("before")))

    def _session(self, viewer: Viewer, request: web.Request) -> Awaitable[Json]:
        first = _number(request.query.get("first"))
        return self._dashboard.session(
            viewer, request.match_info["session"], first=None if first is None else int(first)
        )

    def _replies(self, viewer: Viewer, request: web.Request) -> Awaitable[Json]:
        return self._dashboard.replies(viewer, request.match_info["session"])

    def _reply(self, viewer: Viewer, request: web.Request) -> Awaitable[Json]:
        turn = _number(request.match_info["turn"])
        if turn is None:
            raise NotShownError(Text("A reply is named by the number of its turn."))
        return self._dashboard.reply(viewer, request.match_info["session"], int(turn))

    def _search(self, viewer: Viewer, request: web.Request) -> Awaitable[Json]:
        return self._dashboard.search(viewer, request.query.get("q", "")[:400])

    # -- live events -----------------------------------------------------------------------------------------------

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send server-sent events until the page leaves, is too slow, or is logged out."""
        viewer = self._viewer(request)
        if viewer is None:
            return _json(request, {"discord": self._dashboard.discord_login}, HTTPStatus.UNAUTHORIZED)
        client = self._client(request)
        theirs = sum(person == viewer.user_id for person in self._feeds.values())
        full = len(self._feeds) >= MAX_FEEDS or theirs >= MAX_FEEDS_OF_ONE_PERSON
        if full or not self._pages.has_room(client):
            self._count(WebRefusal.CROWDED)
            return _json(request, {"error": Text("Too many pages are open. Close one and load this page again.")}, 429)
        connection, task = request.protocol, asyncio.current_task()
        assert isinstance(connection, WebConnection), "made by the server"
        assert task is not None, "in a request's task"
        self._feeds[task] = viewer.user_id
        self._pages.opened(connection, client)
        try:
            response = web.StreamResponse()
            response.content_type = "text/event-stream"
            # nginx would gather the events.
            response.headers["X-Accel-Buffering"] = "no"
            await response.prepare(request)
            # Known to be somebody, so that it does not make room for a stranger's connection.
            self._pages.admitted(connection, f"dashboard {id(task)}")
            with self._dashboard.follow(
                viewer, request.headers.get("Last-Event-ID", ""), language=page_language(request)
            ) as feed:
                connection.when_lost(feed.end)
                await self._send_events(response, feed, lambda: self._viewer(request) == viewer)
            return response
        finally:
            self._pages.closed(connection)
            del self._feeds[task]

    async def _send_events(
        self, response: web.StreamResponse, feed: LiveFeed, is_logged_in: Callable[[], bool]
    ) -> None:
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    event = await feed.next()
            except TimeoutError:
                event = ": still here\n\n"
            # Asked after the wait, so that nothing is sent that happened since.
            if event is None or not is_logged_in():
                return
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await response.write(event.encode("utf-8", "replace"))
            except (ConnectionError, TimeoutError):
                log.info("dashboard_page_lost")
                return


def _json(request: web.Request, body: Json, status: int = HTTPStatus.OK) -> web.Response:
    return web.json_response(all_in_language(body, page_language(request)), status=status)


def _number(text: str | None) -> float | None:
    """Return a number of at most 15 digits, or None."""
    if text is None or len(text) > 20:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < 1e12 else None
