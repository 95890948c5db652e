"""The user, the ports and the receive buffer of the machine."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.cli.doctor import machine
from bot.cli.doctor.finding import Status
from bot.cli.doctor.machine import check_ports, check_receive_buffer, check_user, check_web_port
from bot.health import FaultKind, Health, HealthFault
from bot.monitoring.probes import HealthProbes
from bot.settings import WebSettings
from bot.web.probes import HEALTH_PATH, ProbeRoutes
from tests.bot.cli.doctor.findings import is_missing
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def test_root_is_warned_of() -> None:
    """A bot that runs as root gets a warning with the remedy."""
    assert check_user(root=False).status == "ok"
    warned = check_user(root=True)
    assert warned.status == "warning"
    assert "user of its own" in warned.remedy


def test_ports() -> None:
    """If no socket can be opened on this machine, the reason is reported."""
    assert check_ports().status is Status.OK

    def bind(_kind: socket.SocketKind) -> None:
        raise OSError(24, "Too many open files")

    assert is_missing(check_ports(bind), detail="Too many open files", remedy="ulimit")


@pytest.mark.asyncio
async def test_web_port() -> None:
    """A port that another program has is a warning: the bot talks without its pages."""
    free = await check_web_port(WebSettings(port=0), bot_runs=False)
    assert (free.status, free.detail) == (Status.OK, "any free one on 127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port: int = other.getsockname()[1]
        taken = await check_web_port(WebSettings(port=port), bot_runs=False)
    assert taken.status is Status.WARNING
    assert taken.detail.startswith(f"127.0.0.1:{port} is in use, by another program: there are no dashboard")
    assert "choose another web.port" in taken.remedy
    again = await check_web_port(WebSettings(port=port), bot_runs=False)
    assert (again.status, again.detail) == (Status.OK, f"127.0.0.1:{port} is free")


@asynccontextmanager
async def answering(app: web.Application) -> AsyncIterator[int]:
    """Serve pages on a port of this machine."""
    async with TestServer(app) as server:
        assert server.port is not None
        yield server.port


@pytest.mark.asyncio
@pytest.mark.parametrize("is_well", [True, False])
async def test_the_bot_s_own_web_port_is_no_problem(*, is_well: bool) -> None:
    """It answers there as monitoring asks, also if something is wrong with it. So would the bot of another folder,
    which the finding does not pass off as this one.
    """
    health, app = Health(FakeClock()), web.Application()
    if not is_well:
        health.add_fault_check(lambda: [HealthFault(FaultKind.MODELS, "It hangs.", needs_restart=True)])
    health.started()
    ProbeRoutes(HealthProbes(health, lambda: (b"", "text/plain"))).add_to(app)
    async with answering(app) as port:
        own = await check_web_port(WebSettings(port=port), bot_runs=True)
    assert own.status is Status.OK
    assert own.detail == f"127.0.0.1:{port} is in use, by a bot that runs (several on one machine need a web.port each)"


@pytest.mark.asyncio
@pytest.mark.parametrize("body", [None, "ok", "[" * 10_000, '{"status": "up"}', '{"status": []}', '["alive"]', "\xff"])
async def test_another_program_has_the_web_port_of_a_bot_that_runs(body: str | None) -> None:
    """Whatever it answers at that address, the bot's pages cannot be reached."""
    app = web.Application()

    async def answer(_: web.Request) -> web.Response:
        assert body is not None
        return web.Response(body=body.encode("latin-1"))

    if body is not None:
        app.router.add_get(HEALTH_PATH, answer)
    async with answering(app) as port:
        taken = await check_web_port(WebSettings(port=port), bot_runs=True)
    assert taken.status is Status.WARNING
    assert taken.detail.startswith(f"127.0.0.1:{port} is in use, and no bot answers there: there are no dashboard")


@pytest.mark.asyncio
async def test_a_program_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the connection, as a bot that is frozen would too."""
    monkeypatch.setattr(machine, "ANSWER_WITHIN_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        taken = await check_web_port(WebSettings(port=silent.getsockname()[1]), bot_runs=True)
    assert (taken.status, "no bot answers there" in taken.detail) == (Status.WARNING, True)


@pytest.mark.asyncio
@pytest.mark.parametrize("host", ["192.0.2.1", "a" * 64])
async def test_a_web_host_that_is_not_this_machine(host: str) -> None:
    """Whatever is wrong with it, the remedy names the setting."""
    finding = await check_web_port(WebSettings(host=host), bot_runs=True)
    assert finding.status is Status.WARNING
    assert finding.detail.startswith(f"nothing can listen on {host}:8095 (")
    assert "Set web.host to an address of this machine" in finding.remedy


def test_receive_buffer() -> None:
    """A small receive buffer is a warning that names the number of people it is enough for, and the remedy."""
    assert check_receive_buffer().detail.startswith("the system keeps ")
    assert check_receive_buffer(lambda: 4 << 20).status is Status.OK
    small = check_receive_buffer(lambda: 212_992)
    assert small.status is Status.WARNING
    assert "208 KB" in small.detail
    assert "more than 66 people" in small.detail
    assert "net.core.rmem_max=4194304" in small.remedy

    def refuse() -> int:
        raise OSError(24, "Too many open files")

    assert check_receive_buffer(refuse).detail == "not known: Too many open files"
