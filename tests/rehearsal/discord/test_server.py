"""Unmodified discord.py clients log in to the local Discord, join voice, share keys, hear each other, and leave."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest

from rehearsal.discord import LocalDiscord
from rehearsal.people.person import scripted_member
from tests.rehearsal.discord.stock import Tone, connect, encrypted, stock_bot, until
from tests.rehearsal.people.sounds import clip_of

if TYPE_CHECKING:
    from pathlib import Path

BOT, SPARE, ADA, BEN = 1001, 1002, 2001, 2002


async def test_a_stock_bot_learns_the_guild() -> None:
    """READY and GUILD_CREATE contain what discord.py needs: people, channels, and the bot's permissions."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot:
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


async def test_two_stock_bots_and_a_person_hear_each_other(tmp_path: Path) -> None:
    """Everybody hears everybody else, decrypted with keys that the local Discord never has."""
    clip = clip_of(tmp_path)
    async with (
        LocalDiscord() as local,
        stock_bot(local, BOT) as bot,
        stock_bot(local, SPARE) as spare,
        scripted_member(local, ADA) as ada,
        scripted_member(local, BEN) as ben,
    ):
        first, second = await connect(bot), await connect(spare)
        await ada.meet(BOT)
        await until(lambda: encrypted(first, second), "one epoch for both bots")
        first.play(Tone(0.6))
        await asyncio.gather(until(lambda: not first.is_playing(), "the end of the tone"), ada.say(clip))
        for listener, speaker in ((ada, BOT), (ben, BOT), (ben, ADA)):
            heard = listener.heard(speaker)
            await until(lambda heard=heard: len(heard) >= 25, "25 frames heard")  # type: ignore[misc]
            assert heard.first_voiced_at(since=0.0) is not None
        assert ada.dave_failures == 0
        assert local.status()["packets"]["bad"] == 0
