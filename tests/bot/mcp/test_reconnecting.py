"""A connection is opened again whatever ended it, unless the bot ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.typing import EventDict

from bot.mcp.connection import STEADY_S, McpConnection
from bot.mcp.settings import McpServerSettings
from tests.bot.mcp.approved import AllApproved
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import loop_turns
from tests.patience import PATIENCE_S


async def test_a_server_that_goes_again_and_again_is_opened_at_growing_intervals(
    monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]
) -> None:
    """Whatever ended it: what the library awaits may have been cancelled. That it answers at first does not count,
    unless it has lasted.
    """
    clock, opened, gone = FakeClock(), asyncio.Event(), asyncio.Event()
    failures = [asyncio.CancelledError(), OSError("gone"), ExceptionGroup("", [OSError("gone")])]
    connection = McpConnection(McpServerSettings(name="hub", url="https://hub.example/mcp"), clock, AllApproved())

    @asynccontextmanager
    async def open_it(**_: object) -> AsyncIterator[None]:
        opened.set()
        yield

    async def check(_: object) -> None:
        await gone.wait()
        gone.clear()
        raise failures.pop(0)

    monkeypatch.setattr(connection, "open", open_it)
    monkeypatch.setattr(connection, "check_regularly", check)
    running = asyncio.create_task(connection.run())
    async with asyncio.timeout(PATIENCE_S):
        for lasts_s, pause_s in ((0.0, 1.0), (STEADY_S - 1, 2.0), (STEADY_S, 1.0)):
            await opened.wait()
            opened.clear()
            clock.advance(lasts_s)
            gone.set()
            await clock.until_somebody_sleeps()
            clock.advance(pause_s - 0.1)
            await loop_turns(3)
            assert not opened.is_set()
            clock.advance(0.1)
        await opened.wait()
    connection.stop(running)
    await asyncio.wait({running})
    assert [line["event"] for line in logs].count("mcp_server_lost") == 2
