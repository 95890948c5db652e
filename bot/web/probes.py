"""The addresses that monitoring asks: /healthz, /readyz and /metrics.

They are open to everybody who reaches the server, so they hold nothing about people.
`/metrics` answers only who asks the server itself: how much a bot is used is nobody's business beyond a reverse proxy.
Nor is it that of a page on the internet, opened on this machine, whose own name leads to this server (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from aiohttp import web

if TYPE_CHECKING:
    from bot.web.dashboard_port import Json

HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
METRICS_PATH: Final = "/metrics"
# What reverse proxies add to a request.
FORWARDED: Final = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via")
# Ends of names that public DNS has not: RFC 6761, RFC 6762, RFC 8375, ICANN's for private use, and Kubernetes'.
_PRIVATE_NAMES: Final = (".localhost", ".local", ".home.arpa", ".internal", ".svc")


class Probes(Protocol):
    """What monitoring is answered. Both methods return at once: whether all is well, and the JSON that says why not."""

    def liveness(self) -> tuple[bool, Json]:
        """Return whether the process is alive: none of its tasks has ended, and nothing has failed for good that a new
        process would have. If not, restart it.
        """

    def readiness(self) -> tuple[bool, Json]:
        """Return whether the bot can do its work now."""

    def metrics(self) -> tuple[bytes, str]:
        """Return the metrics in Prometheus' format, and its content type."""


class ProbeRoutes:
    """The handlers of one web server."""

    def __init__(self, probes: Probes) -> None:
        self._probes = probes

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get(HEALTH_PATH, self._health)
        app.router.add_get(READY_PATH, self._ready)
        app.router.add_get(METRICS_PATH, self._metrics)

    async def _health(self, _: web.Request) -> web.Response:
        return _answer(*self._probes.liveness())

    async def _ready(self, _: web.Request) -> web.Response:
        return _answer(*self._probes.readiness())

    async def _metrics(self, request: web.Request) -> web.Response:
        if any(name in request.headers for name in FORWARDED):
            raise web.HTTPForbidden(text="Metrics are not given through a proxy. Ask me directly.\n")
        if not _is_private_host(request.headers.get("Host", "")):
            raise web.HTTPForbidden(text="Metrics are not given under a public host name. Ask me by my address.\n")
        body, kind = self._probes.metrics()
        return web.Response(body=body, headers={"Content-Type": kind})


def _is_private_host(host: str) -> bool:
    """Return whether a Host header is an address, or a name that nobody can point here by public DNS."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return False
    if "." not in name or name.endswith(_PRIVATE_NAMES):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _answer(well: bool, body: Json) -> web.Response:
    return web.json_response(body, status=HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE)
