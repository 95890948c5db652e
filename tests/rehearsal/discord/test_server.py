"""What an unmodified discord.py client is told, and what the local Discord tells of its own mistakes.

Clients that join voice and hear each other: tests/node, and the example of tests/rehearsal/test_pytest_plugin.py.
"""

from __future__ import annotations

import aiohttp
import pytest

from rehearsal.discord import LocalDiscord
from tests.rehearsal.discord.stock import stock_bot

BOT, ADA = 1001, 2001


async def test_a_stock_bot_learns_the_guild(local: LocalDiscord) -> None:
    """READY and GUILD_CREATE contain what discord.py needs: people, channels, and the bot's permissions."""
    async with stock_bot(local, BOT) as bot:
        guild = bot.get_guild(500)
        assert guild is not None
        assert bot.user is not None
        assert (bot.user.name, bot.application_id) == ("roomtone", BOT)
        # Of the others Discord tells only when they come into voice.
        assert [member.display_name for member in guild.members] == ["Roomtone"]
        assert [channel.name for channel in guild.voice_channels] == ["Evening", "Side room"]
        rights = guild.voice_channels[0].permissions_for(guild.me)
        assert rights.connect
        assert rights.speak
        assert not rights.administrator
        assert (guild.owner_id, guild.member_count) == (ADA, len(local.guild.members))


async def test_an_answer_that_lacks_something_is_told_at_the_end() -> None:
    """The client gets it all the same. In a test, the warning is an error, so no test passes on a wrong answer."""

    async def asked() -> int:
        async with LocalDiscord() as local, aiohttp.ClientSession(headers={"Authorization": "Bot 1001.x"}) as http:
            posted = await local.post_message(BOT, "hello")
            posted.payload["attachments"] = [{"id": "1", "filename": "a.txt", "size": 1}]
            return (await http.get(f"{local.api_base}/channels/601/messages")).status

    with pytest.warns(UserWarning, match=r"GET /channels/\{\}/messages 0\.attachments\.0\.url"):
        assert await asked() == 200
