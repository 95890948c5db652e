"""The bot's web server: the share page with its web socket, the dashboard, and what monitoring asks: /healthz, /readyz
and /metrics. By default for the local machine only.

Every response forbids the browser all features that the pages do not need, and slow requests are disconnected. What
monitoring asks is open to everybody who reaches the server, so it holds nothing about people. `/metrics` answers only
who asks the server itself: how much a bot is used is nobody's business beyond a reverse proxy. Nor is it that of a page
on the internet, opened on this machine, whose own name leads to this server (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import ipaddress
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

import structlog
from aiohttp import WSCloseCode, web
from aiohttp.hdrs import SERVER

from bot.clock import Clock, SystemClock
from bot.errors import SetupError, why_not_listening
from bot.texts.text import Text
from bot.web.connection import Visits, WebConnection, refuse_subprotocols
from bot.web.dashboard_routes import FILES as DASHBOARD_FILES
from bot.web.dashboard_routes import DashboardRoutes
from bot.web.login_routes import LOGIN_PATH, MAX_BODY_BYTES, LoginRoutes, Logins
from bot.web.page_texts import TEXT_SCRIPT, TEXTS_SCRIPT, file_handler, page_language, serve_texts
from bot.web.security import Site, TrustedProxies, security_headers
from bot.web.socket import HEARTBEAT_S, serve
from voice.screen.frame import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.dashboard.access import Json
    from bot.dashboard.service import DashboardService
    from bot.monitoring.service_checks import HealthProbes
    from bot.screen.screens import Screens
    from bot.settings import WebSettings

log = structlog.get_logger()

HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
METRICS_PATH: Final = "/metrics"
# What reverse proxies add to a request.
FORWARDED: Final = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via")
# Ends of names that public DNS has not: RFC 6761, RFC 6762, RFC 8375, ICANN's for private use, and Kubernetes'.
_PRIVATE_NAMES: Final = (".localhost", ".local", ".home.arpa", ".internal", ".svc")


def add_probes(app: web.Application, probes: HealthProbes) -> None:
    """Add the addresses that monitoring asks."""

    async def health(_: web.Request) -> web.Response:
        return _answer(*probes.liveness())

    async def ready(_: web.Request) -> web.Response:
        return _answer(*probes.readiness())

    async def metrics(request: web.Request) -> web.Response:
        if any(name in request.headers for name in FORWARDED):
            raise web.HTTPForbidden(text="Metrics are not given through a proxy. Ask me directly.\n")
        if not _is_private_host(request.headers.get("Host", "")):
            raise web.HTTPForbidden(text="Metrics are not given under a public host name. Ask me by my address.\n")
        body, kind = probes.metrics.scrape()
        return web.Response(body=body, headers={"Content-Type": kind})

    app.router.add_get(HEALTH_PATH, health)
    app.router.add_get(READY_PATH, ready)
    app.router.add_get(METRICS_PATH, metrics)


def _is_private_host(host: str) -> bool:
    """Return whether a Host header is an address, or a name that nobody can point here by public DNS."""
    with suppress(ValueError):
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
        return "." not in name or name.endswith(_PRIVATE_NAMES) or bool(ipaddress.ip_address(name).packed)
    return False


def _answer(well: bool, body: Json) -> web.Response:
    return web.json_response(body, status=HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE)


# A request's headers arrive within milliseconds. A slower client only holds the connection open.
HEAD_TIMEOUT_S: Final = 10.0
SHUTDOWN_S: Final = 2.0
# What to listen on so that 127.0.0.1 answers.
_ANSWERS_LOCALLY: Final = ("127.0.0.1", "localhost", "0.0.0.0", "::")  # noqa: S104 - it is only compared
_HEAD_BYTES: Final = 8_190

SHARE_PATH: Final = "/share"
_FILES: Final = {
    SHARE_PATH: ("share.html", "text/html"),
    "/page/base.css": ("base.css", "text/css"),
    "/share/share.css": ("share.css", "text/css"),
    "/share/share.js": ("share.js", "text/javascript"),
    "/share/view.js": ("view.js", "text/javascript"),
    "/share/secret.js": ("share_secret.js", "text/javascript"),
    "/share/capture_worker.js": ("capture_worker.js", "text/javascript"),
    "/share/icon.svg": ("icon.svg", "image/svg+xml"),
    TEXT_SCRIPT: ("text.js", "text/javascript"),
}


class WebServer:
    """The web server. Use it with `async with`; it listens from `start` on.

    `dashboard`: what the pages at / show; None: there are none. `probes`: what monitoring is answered.
    `on_login_link`: gets each new login link for the dashboard, the first one when the server listens.
    *Ownership*: it owns the sockets; leaving the block closes them.
    """

    def __init__(
        self,
        settings: WebSettings,
        screens: Screens,
        *,
        dashboard: DashboardService | None = None,
        probes: HealthProbes | None = None,
        on_login_link: Callable[[str], None] = lambda _: None,
        clock: Clock | None = None,
    ) -> None:
        """Raises `SetupError` if the public URL or a proxy address is invalid."""
        self._settings = settings
        self._screens = screens
        try:
            proxies = TrustedProxies(settings.trusted_proxies)
        except ValueError as error:
            raise SetupError(
                Text("There is a wrong address or network in web.trusted_proxies: {error}.", error=error)
            ) from error
        try:
            site = Site.of(settings.public_url, port=settings.port)
        except ValueError as error:
            raise SetupError(
                Text("web.public_url is not a valid address. Set it to one like https://watch.example.org.")
            ) from error
        self._starting = asyncio.Lock()
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None
        self.port = settings.port
        self.sockets: set[web.WebSocketResponse] = set()
        self._visits = Visits(site, proxies, clock or SystemClock())
        self._on_login_link = on_login_link
        self._logins = Logins(self._visits.clock, on_new_link=lambda: on_login_link(self.login_link))
        self._probes = probes
        self.dashboard: DashboardRoutes | None = None
        self._login: LoginRoutes | None = None
        if dashboard is not None:
            self._login = LoginRoutes(dashboard, self._logins, self._visits)
            self.dashboard = DashboardRoutes(dashboard, self._login, self._visits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._visits.log_refused()
        if self._listening is not None:
            self._listening.close()
        if self.dashboard is not None:
            self.dashboard.close()
        # A page that does not take the goodbye is not waited for.
        goodbyes = [socket.close(code=WSCloseCode.GOING_AWAY) for socket in self.sockets]
        with suppress(TimeoutError):
            async with asyncio.timeout(SHUTDOWN_S):
                await asyncio.gather(*goodbyes, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()
        self._visits.pages.cut_all()

    @property
    def site(self) -> Site:
        return self._visits.site

    @property
    def is_local(self) -> bool:
        """Return whether links work only on the local machine."""
        return not self._settings.public_url

    def share_link(self, token: str) -> str:
        """Return the URL of the share page. The token is in the fragment, which browsers send to no server."""
        return f"{self.site.origin}{SHARE_PATH}#{token}"

    @property
    def is_listening(self) -> bool:
        return self._listening is not None

    @property
    def login_link(self) -> str:
        """Return the URL that logs one browser in to the dashboard as the operator. It works once."""
        origin = self.site.origin
        if self.is_local:
            # As people write it who forward the port of another machine.
            host = self._settings.host
            own = "127.0.0.1" if host in _ANSWERS_LOCALLY else f"[{host}]" if ":" in host else host
            origin = f"http://{own}:{self.port}"
        return f"{origin}{LOGIN_PATH}#{self._logins.link_token}"

    async def start(self) -> None:
        """Start to listen; a second call does nothing. Raises `SetupError`."""
        async with self._starting:
            if self._listening is not None:
                return
            runner = web.AppRunner(self._application(), shutdown_timeout=SHUTDOWN_S)
            await runner.setup()
            try:
                listening = await asyncio.get_running_loop().create_server(
                    lambda: self._new_connection(runner), self._settings.host, self._settings.port
                )
            except OSError as error:
                await runner.cleanup()
                raise SetupError(
                    Text(
                        "My web pages cannot use {host}:{port} ({reason}). Choose another web.port, "
                        "or stop the program that uses this one.",
                        host=self._settings.host,
                        port=str(self._settings.port),
                        reason=why_not_listening(error),
                    )
                ) from error
            self._runner, self._listening = runner, listening
            self.port = listening.sockets[0].getsockname()[1]
            self._visits.site = Site.of(self._settings.public_url, port=self.port)
            log.info("web_listening", host=self._settings.host, port=self.port, origin=self.site.origin)
            if self.dashboard is not None:
                self._on_login_link(self.login_link)

    def _new_connection(self, runner: web.AppRunner) -> asyncio.Protocol:
        assert runner.server is not None, "set up"
        return WebConnection(
            runner.server,
            loop=asyncio.get_running_loop(),
            visits=self._visits,
            keepalive_timeout=HEAD_TIMEOUT_S,
            lingering_time=1.0,
            max_line_size=_HEAD_BYTES,
            max_field_size=_HEAD_BYTES,
        )

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[refuse_subprotocols])
        files = _FILES if self.dashboard is None else {**_FILES, **DASHBOARD_FILES}
        for path, (name, kind) in files.items():
            app.router.add_get(path, file_handler(name, kind))
        app.router.add_get(TEXTS_SCRIPT, serve_texts)
        app.router.add_get(f"{SHARE_PATH}/socket", self._socket)
        for routes in (self._login, self.dashboard):
            if routes is not None:
                routes.add_to(app)
        if self._probes is not None:
            add_probes(app, self._probes)
        app.on_response_prepare.append(self._add_headers)
        return app

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        # The library names itself and its version there.
        response.headers.popall(SERVER, None)
        response.headers.update(security_headers(self.site))
        if not isinstance(response, web.WebSocketResponse):
            # One request for each connection, so that none stays open idle.
            response.headers["Connection"] = "close"
            response.force_close()

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        """Open a web socket, only for our own page."""
        client, pages = self._visits.client(request), self._visits.pages
        self._visits.require_own_origin(request)
        if not pages.has_room(client):
            self._visits.count("crowded")
            raise web.HTTPTooManyRequests(text="Too many pages are open.")
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MAX_FRAME_BYTES + 1, compress=False)
        if not socket.can_prepare(request):
            raise web.HTTPUpgradeRequired(text="This is a web socket.")
        connection = request.protocol
        assert isinstance(connection, WebConnection), "made by _new_connection"
        self.sockets.add(socket)
        pages.opened(connection, client)
        try:
            await socket.prepare(request)
            await serve(socket, self._screens, self._visits, connection, language=page_language(request))
        finally:
            pages.closed(connection)
            self.sockets.discard(socket)
        return socket
