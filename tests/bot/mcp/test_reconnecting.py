"""A connection is opened again whatever ended it, unless the bot ends."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from bot.mcp.connection import FIRST_RETRY_S, STEADY_S, McpConnection
from bot.mcp.settings import McpServerSettings
from tests.bot.mcp.approved import AllApproved
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Opened:
    """Opens as the test says. `failures`: what the next attempts fail with."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.open = asyncio.Event()

    @asynccontextmanager
    async def __call__(self, **_: object) -> AsyncIterator[None]:
        """Fail, or stay open."""
        if self.failures:
            raise self.failures.pop(0)
        self.open.set()
        yield


@pytest.mark.parametrize("failure", [asyncio.CancelledError(), OSError("gone"), ExceptionGroup("", [OSError("gone")])])
async def test_whatever_ends_a_connection_it_is_opened_again(
    failure: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the library awaits may have been cancelled, and nobody wanted the connection's task to end."""
    clock, opened = FakeClock(), Opened(failure)
    connection = McpConnection(McpServerSettings(name="hub", url="https://hub.example/mcp"), clock, AllApproved())
    monkeypatch.setattr(connection, "open", opened)
    monkeypatch.setattr(connection, "_check_regularly", asyncio.Event().wait)
    with capture_logs() as logs:
        running = asyncio.create_task(connection.run())
        async with asyncio.timeout(PATIENCE_S):
            await clock.until_somebody_sleeps()
            clock.advance(FIRST_RETRY_S)
            await opened.open.wait()
        connection.stop(running)
        await asyncio.wait({running})
    assert [line["event"] for line in logs] == ["mcp_server_lost", "mcp_server_connected"]


async def test_a_server_that_goes_again_and_again_is_opened_at_growing_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That it answers at first does not count, unless it has lasted."""
    clock, opened, gone = FakeClock(), Opened(), asyncio.Event()
    connection = McpConnection(McpServerSettings(name="hub", url="https://hub.example/mcp"), clock, AllApproved())

    async def check() -> None:
        await gone.wait()
        gone.clear()
        raise OSError("gone")

    monkeypatch.setattr(connection, "open", opened)
    monkeypatch.setattr(connection, "_check_regularly", check)
    with capture_logs() as logs:
        running = asyncio.create_task(connection.run())
        async with asyncio.timeout(PATIENCE_S):
            for lasts_s, pause_s in ((0.0, 1.0), (STEADY_S - 1, 2.0), (STEADY_S, 1.0)):
                await opened.open.wait()
                opened.open.clear()
                clock.advance(lasts_s)
                gone.set()
                await clock.until_somebody_sleeps()
                clock.advance(pause_s - 0.1)
                for _ in range(3):
                    await asyncio.sleep(0)
                assert not opened.open.is_set()
                clock.advance(0.1)
            await opened.open.wait()
        connection.stop(running)
        await asyncio.wait({running})
    assert [line["event"] for line in logs].count("mcp_server_lost") == 2
