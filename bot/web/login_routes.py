"""Who looks at the dashboard, and for how long: login links, logged-in browsers, and the addresses with which somebody
logs in and out again.

A login link works once and makes its browser the operator's. Browsers are known by the secret in their cookie, of which
only the digest is kept here. The addresses take requests of our own page only, because they change something. No script
reads the two cookies and no other site sends them: who is logged in, and a login at Discord. Discord's way back is a
page of ours that asks for the rest by itself, so both can be strict.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from bot.dashboard.access import OPERATOR, DashboardUser, Json, LoginRefusedError
from bot.texts.text import Text, sentence_of
from bot.web.page_texts import json_response
from voice.secret_digest import digest_of_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from bot.clock import Clock
    from bot.dashboard.service import DashboardService
    from bot.web.connection import Visits

log = structlog.get_logger()

# More browsers than the people who run one bot have, and more than one person uses. Beyond it the browser that was
# silent for longest is logged out: of all, or of that person.
MAX_LOGINS: Final = 64
MAX_LOGINS_OF_ONE_PERSON: Final = 8
# A browser stays logged in overnight, and never longer than a week.
IDLE_S: Final = 24 * 3_600.0
LONGEST_S: Final = 7 * 24 * 3_600.0


@dataclass(slots=True)
class _Login:
    user: DashboardUser
    since: float
    seen: float


class Logins:
    """The present login link and the browsers that are logged in. Not thread-safe.

    `on_new_link`: called when the link was used up and there is another one.
    `link_token`: the secret of the login link that works now.
    """

    def __init__(self, clock: Clock, *, on_new_link: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._on_new_link = on_new_link
        self.link_token = secrets.token_urlsafe(32)
        # By digest of the cookie, the browser that was silent for longest first.
        self._logins: dict[bytes, _Login] = {}

    def redeem(self, token: str, *, instead_of: str = "") -> str | None:
        """Use the login link up. Returns the cookie of an operator's browser, or None if the link does not work.

        `instead_of`: the browser's former cookie, which is good for nothing then.
        """
        if not secrets.compare_digest(digest_of_secret(token), digest_of_secret(self.link_token)):
            return None
        self.link_token = secrets.token_urlsafe(32)
        cookie = self.log_in(OPERATOR, instead_of=instead_of)
        self._on_new_link()
        return cookie

    def log_in(self, user: DashboardUser, *, instead_of: str = "") -> str:
        """Log a browser in and return its cookie. `instead_of`: see `redeem`."""
        now = self._clock.monotonic()
        self.log_out(instead_of)
        self._drop_old(now)
        own = [key for key, login in self._logins.items() if login.user.user_id == user.user_id]
        for key in own[: max(0, len(own) + 1 - MAX_LOGINS_OF_ONE_PERSON)]:
            del self._logins[key]
        while len(self._logins) >= MAX_LOGINS:
            del self._logins[next(iter(self._logins))]
        cookie = secrets.token_urlsafe(32)
        self._logins[digest_of_secret(cookie)] = _Login(user, now, now)
        return cookie

    def user(self, cookie: str | None) -> DashboardUser | None:
        """Return who is logged in with this cookie, if anybody."""
        now = self._clock.monotonic()
        self._drop_old(now)
        key = digest_of_secret(cookie or "")
        login = self._logins.pop(key, None)
        if login is None:
            return None
        login.seen = now
        self._logins[key] = login
        return login.user

    def log_out(self, cookie: str | None) -> None:
        self._logins.pop(digest_of_secret(cookie or ""), None)

    def _drop_old(self, now: float) -> None:
        self._logins = {
            key: login
            for key, login in self._logins.items()
            if now - login.seen < IDLE_S and now - login.since < LONGEST_S
        }


LOGIN: Final = "roomtone-dashboard"
# Only while a browser is at Discord.
PENDING_LOGIN: Final = "roomtone-login"
PENDING_LOGIN_S: Final = 600

# Each way back from Discord asks Discord, which bars a machine that sends too many invalid requests, and with it the
# bot. Anybody who reaches the pages can try.
PER_S: Final = 60.0
# A third of the 10,000 invalid requests in ten minutes that Discord allows an address (its page "Rate Limits").
# Far more than people need, because whoever uses it up keeps them out.
MAX_TRIES: Final = 300
# Of a household behind an address that a trusted proxy vouches for.
MAX_TRIES_OF_ONE_CLIENT: Final = 20


class LoginTries:
    """The tries of the last minute. Callers pass in monotonic seconds."""

    def __init__(self) -> None:
        self._tries: list[tuple[float, Hashable | None]] = []

    def allows(self, client: Hashable | None, now: float) -> bool:
        """Count a try, and return whether it may be made. `client`: whose it is, if that is known."""
        self._tries = [each for each in self._tries if now - each[0] < PER_S]
        of_client = sum(other == client for _, other in self._tries)
        if len(self._tries) >= MAX_TRIES or (client is not None and of_client >= MAX_TRIES_OF_ONE_CLIENT):
            return False
        self._tries.append((now, client))
        return True


LOGIN_PATH: Final = "/login"
LINK_USED: Final = Text("This login link no longer works, because somebody used it or the bot was restarted.")
# A login request is one short JSON object.
MAX_BODY_BYTES: Final = 4_096
BODY_TIMEOUT_S: Final = 10.0
# Discord is asked three times, one request after the other.
DISCORD_TIMEOUT_S: Final = 45.0


class LoginRoutes:
    """The handlers of one web server."""

    def __init__(self, dashboard: DashboardService, logins: Logins, visits: Visits) -> None:
        self._dashboard = dashboard
        self._logins = logins
        self._visits = visits
        self._tries = LoginTries()

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get("/api/me", self._me)
        app.router.add_post("/api/login", self._log_in)
        app.router.add_post("/api/login/discord", self._begin_discord)
        app.router.add_post("/api/login/discord/back", self._back_from_discord)
        app.router.add_post("/api/logout", self._log_out)

    def user(self, request: web.Request) -> DashboardUser | None:
        """Return who is logged in with the browser that asks, if anybody."""
        return self._logins.user(self._cookie(request, LOGIN))

    async def _me(self, request: web.Request) -> web.Response:
        user = self.user(request)
        if user is None:
            # No error: a browser writes those into its console.
            return json_response(request, {"discord": self._dashboard.discord_login})
        shards = self._dashboard.shards if user.is_operator else ""
        return json_response(request, {"name": user.name, "operator": user.is_operator, "shards": shards})

    async def _log_in(self, request: web.Request) -> web.Response:
        body = await self.body(request)
        cookie = self._logins.redeem(str(body.get("token", "")), instead_of=self._cookie(request, LOGIN))
        if cookie is None:
            self._visits.count("login_link")
            return json_response(request, {"error": LINK_USED}, HTTPStatus.FORBIDDEN)
        log.info("dashboard_login", how="link")
        return self._with_cookie(json_response(request, {}), LOGIN, cookie)

    async def _begin_discord(self, request: web.Request) -> web.Response:
        await self.body(request)
        try:
            # One of our own addresses, as `body` has checked: the one with the browser's cookies.
            begun = self._dashboard.start_login(f"{request.headers['Origin']}{LOGIN_PATH}")
        except LoginRefusedError as error:
            return json_response(request, {"error": sentence_of(error)}, HTTPStatus.FORBIDDEN)
        response = json_response(request, {"url": begun.url})
        return self._with_cookie(response, PENDING_LOGIN, begun.proof, max_age=PENDING_LOGIN_S)

    async def _back_from_discord(self, request: web.Request) -> web.Response:
        """Log in the browser that Discord sent back.

        The page asks for this by itself: browsers send no strict cookie with the way back from another site.
        """
        body = await self.body(request)
        if not self._tries.allows(self._visits.client(request).group, self._visits.clock.monotonic()):
            self._visits.count("crowded")
            crowded = Text("Too many people are logging in now. Try again in a minute.")
            return json_response(request, {"error": crowded}, HTTPStatus.TOO_MANY_REQUESTS)
        proof = self._cookie(request, PENDING_LOGIN)
        try:
            async with asyncio.timeout(DISCORD_TIMEOUT_S):
                state, code = str(body.get("state", "")), str(body.get("code", ""))
                user = await self._dashboard.finish_login(proof, state, code)
        except LoginRefusedError as error:
            self._visits.count("discord_login")
            response = json_response(request, {"error": sentence_of(error)}, HTTPStatus.FORBIDDEN)
        except TimeoutError:
            late = Text("Discord did not answer in time. Try again.")
            return json_response(request, {"error": late}, HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            log.info("dashboard_login", how="discord", user_id=user.user_id)
            cookie = self._logins.log_in(user, instead_of=self._cookie(request, LOGIN))
            response = self._with_cookie(json_response(request, {}), LOGIN, cookie)
        return self._with_cookie(response, PENDING_LOGIN, "", max_age=0)

    async def _log_out(self, request: web.Request) -> web.Response:
        await self.body(request)
        self._logins.log_out(self._cookie(request, LOGIN))
        return self._with_cookie(json_response(request, {}), LOGIN, "", max_age=0)

    async def body(self, request: web.Request) -> Json:
        """Return the JSON object of a request of our own page. Raises HTTP errors."""
        self._visits.require_own_origin(request)
        body: object = None
        with suppress(TimeoutError, ValueError, RecursionError):
            async with asyncio.timeout(BODY_TIMEOUT_S):
                # Bytes: a text would need the codec that the request names, and there may be none.
                body = json.loads(await request.read())
        if not isinstance(body, dict):
            raise web.HTTPBadRequest(text="This is not a valid request.")
        return body

    def _cookie(self, request: web.Request, name: str) -> str:
        """Return a cookie's value; empty: the browser sent none."""
        return request.cookies.get(self._cookie_name(name), "")

    def _with_cookie(
        self, response: web.Response, name: str, value: str, *, max_age: int | None = None
    ) -> web.Response:
        """Return an answer that has the browser keep a cookie. `max_age`: in seconds; None: until it is closed."""
        response.set_cookie(
            self._cookie_name(name),
            value,
            max_age=max_age,
            path="/",
            secure=self._visits.site.is_secure,
            httponly=True,
            samesite="Strict",
        )
        return response

    def _cookie_name(self, name: str) -> str:
        """Return a cookie's full name. One with this prefix cannot be set by another site of the domain (RFC 6265bis).

        It has the port, because browsers share cookies among the ports of a host, where other bots may listen.
        """
        port = urlsplit(self._visits.site.origin).port
        name = name if port is None else f"{name}-{port}"
        return f"__Host-{name}" if self._visits.site.is_secure else name
