"""What time it is by Discord's clock."""

from __future__ import annotations

import time

import pytest

from bot.discord.endpoint import discord_time
from bot.settings import DiscordSettings
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_client import settings_for


async def test_discord_tells_the_time_with_every_answer() -> None:
    """Nobody need be logged in. If it does not answer, that is an error of the system."""
    async with LocalDiscord() as local:
        assert abs(await discord_time(settings_for(local)) - time.time()) < 60
    with pytest.raises(OSError, match="did not tell the time"):
        await discord_time(DiscordSettings(api_base="http://127.0.0.1:9"))
