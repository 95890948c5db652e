"""/healthz, /readyz and /metrics on the real web server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import aiohttp
import pytest

from bot.dashboard.access import Json
from bot.monitoring.service_checks import HealthProbes
from bot.settings import WebSettings
from bot.web.server import FORWARDED, WebServer
from tests.bot.web.served_page import FakeHost


class FakeProbes:
    """Answers as the test says."""

    alive = ready = True

    @property
    def metrics(self) -> FakeProbes:
        """Return what has the metrics."""
        return self

    def liveness(self) -> tuple[bool, Json]:
        """Return whether the test says that it is alive."""
        return self.alive, {"status": "alive" if self.alive else "dead"}

    def readiness(self) -> tuple[bool, Json]:
        """Return whether the test says that it is ready."""
        return self.ready, {"status": "ready" if self.ready else "not_ready"}

    def scrape(self) -> tuple[bytes, str]:
        """Return one metric."""
        return b"roomtone_ready 1.0\n", "text/plain; version=1.0.0; charset=utf-8"


@asynccontextmanager
async def served(probes: FakeProbes | None) -> AsyncIterator[aiohttp.ClientSession]:
    """Serve the probes, and yield a client."""
    async with WebServer(WebSettings(port=0), FakeHost(), probes=cast("HealthProbes | None", probes)) as server:
        await server.start()
        async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as http:
            yield http


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_red_is_503_and_green_is_200_for_everybody(path: str) -> None:
    """Both answer in JSON without a login, also through a proxy, and no copy of the answer is kept."""
    probes = FakeProbes()
    async with served(probes) as http:
        for well, status in ((True, 200), (False, 503), (True, 200)):
            probes.alive = probes.ready = well
            async with http.get(path, headers={"X-Forwarded-For": "198.51.100.7"}) as answer:
                assert (answer.status, answer.content_type) == (status, "application/json")
                assert (await answer.json())["status"] in {"alive", "ready"} if well else {"dead", "not_ready"}
                assert answer.headers["Cache-Control"] == "no-store"
                assert "Server" not in answer.headers


async def test_metrics_are_for_who_asks_directly() -> None:
    """Prometheus gets its text. Whoever comes through a reverse proxy gets none."""
    async with served(FakeProbes()) as http:
        async with http.get("/metrics") as answer:
            assert (answer.status, await answer.text()) == (200, "roomtone_ready 1.0\n")
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
        for name in FORWARDED:
            async with http.get("/metrics", headers={name: "198.51.100.7"}) as answer:
                assert answer.status == 403
                assert "roomtone_ready" not in await answer.text()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8095", 200),
        ("[::1]:8095", 200),
        ("10.1.2.3", 200),
        ("localhost:8095", 200),
        ("bot:8095", 200),
        ("bot.monitoring.svc.cluster.local:8095", 200),
        ("bot.monitoring.svc:8095", 200),
        ("BOT.INTERNAL.", 200),
        ("evil.example:8095", 403),
        ("watch.example.org", 403),
        ("127.0.0.1.evil.example", 403),
        ("local", 200),
        ("notlocal.example", 403),
        ("[::", 403),
    ],
)
async def test_metrics_are_not_for_a_page_that_points_its_name_here(host: str, status: int) -> None:
    """A page on the internet whose own name leads to this machine (DNS rebinding) reads no metrics, nor does anybody
    through a proxy that only passes the name on. Addresses, and names that public DNS has not, are answered.
    """
    async with served(FakeProbes()) as http, http.get("/metrics", headers={"Host": host}) as answer:
        assert answer.status == status
        assert ("roomtone_ready" in await answer.text()) is (status == 200)


async def test_without_probes_there_are_no_such_pages() -> None:
    """A server that nobody monitors has none of the addresses, and they take no other method."""
    async with served(None) as http:
        for path in ("/healthz", "/readyz", "/metrics"):
            async with http.get(path) as answer:
                assert answer.status == 404
    async with served(FakeProbes()) as http, http.post("/healthz") as answer:
        assert answer.status == 405
