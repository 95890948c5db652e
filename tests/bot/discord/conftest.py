"""The bot's client on a local Discord. Nobody waits here for what is tested elsewhere: Discord's limits
(tests/rehearsal), and pauses before another try.

What opens a Discord is imported when it is needed: one fixture is every test's (tests/conftest.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import discord
import pytest
import pytest_asyncio

from bot.discord import answers, posting
from bot.discord.client import RoomtoneClient
from rehearsal.discord.rest import gate

if TYPE_CHECKING:
    from rehearsal.discord.server import LocalDiscord
    from tests.bot.discord.client import FakeRooms


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(*_: object, **__: object) -> None:
        """Identify without discord.py's pause of five seconds."""

    monkeypatch.setattr(RoomtoneClient, "before_identify_hook", at_once)
    monkeypatch.setattr(gate, "LIMITS", {})
    monkeypatch.setattr(posting, "AGAIN_AFTER_S", 0.0)


@pytest.fixture
def rooms() -> FakeRooms:
    """The rooms of `client`."""
    from tests.bot.discord.client import FakeRooms

    return FakeRooms()


@pytest_asyncio.fixture
async def client(local: LocalDiscord, rooms: FakeRooms) -> AsyncIterator[RoomtoneClient]:
    """The bot's client, connected to the Discord of `local`."""
    from bot.discord.connection import connected
    from tests.bot.discord.client import settings_for

    async with connected(settings_for(local), rooms) as opened:
        yield opened


@pytest.fixture
def told_to_wait(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return what is set once Discord was told, or could not be told, that an answer comes later. That is at once: each
    command came late.
    """
    told, defer = asyncio.Event(), answers.defer

    async def deferred(interaction: discord.Interaction, *, in_place: bool = False) -> None:
        try:
            await defer(interaction, in_place=in_place)
        finally:
            told.set()

    monkeypatch.setattr(answers, "defer", deferred)
    monkeypatch.setattr(discord.Interaction, "created_at", discord.utils.snowflake_time(0))
    return told
