"""The parts for shared screens, built from settings; the page server starts with the bot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
from structlog.typing import EventDict

from bot.health import FaultKind, Health
from bot.llm.model_calls import UNMETERED
from bot.screen.screens import Screens
from bot.web.watching import WatchService
from bot.wiring.pages import open_pages, open_screens
from bot.wiring.settings import BotSettings
from config.schema import Settings
from tests.fakes.clock import FakeClock


@asynccontextmanager
async def opened(**web: object) -> AsyncIterator[tuple[Screens, WatchService, Health]]:
    """Open the parts with these web settings."""
    settings = Settings.model_validate({"web": web})
    parts = BotSettings.from_schema(settings)
    async with AsyncExitStack() as stack:
        screens = await open_screens(stack, parts, FakeClock(), meter=UNMETERED)
        health = Health(FakeClock())
        watching, _ = await open_pages(stack, parts, screens, health)
        health.started()
        yield screens, watching, health


async def test_the_pages_are_served_at_once(logs: list[EventDict]) -> None:
    """The web server starts with the bot: the dashboard, a proxy and already open pages can reach it."""
    async with opened(port=0, public_url="https://watch.example.org") as (screens, desk, health):
        (port,) = [line["port"] for line in logs if line["event"] == "web_listening"]
        assert not desk.is_local
        assert screens.room(10) is None
        assert health.faults() == []
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/share") as answer:
            assert answer.status == 200


async def test_a_bot_without_pages_still_starts(logs: list[EventDict]) -> None:
    """If the web server cannot listen, the bot starts without it. /status says so, and the log what to change."""
    async with opened(port=0, host="192.0.2.1") as (_, desk, health):
        assert desk.is_local
        (fault,) = health.faults()
    assert (fault.kind, fault.blocks) == (FaultKind.PAGES, False)
    assert "no dashboard" in fault.what
    (line,) = logs
    assert line["event"] == "web_not_listening"
    assert "web.port" in str(line["problem"])
