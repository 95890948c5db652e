"""Unmodified discord.py clients log in to the local Discord, join voice, share keys, hear each other, and leave."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import discord
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


async def test_a_wrong_token_is_refused_as_discord_refuses_it() -> None:
    """Login with an unknown token fails with 401, which discord.py raises as `LoginFailure`."""
    async with LocalDiscord() as local:
        with pytest.raises(discord.LoginFailure):
            async with stock_bot(local, BOT, token="9999.nobody"):
                pass


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
        assert ada.counts.dave_failures == 0
        assert local.status()["packets"]["bad"] == 0


async def test_keys_change_with_everybody_who_comes_or_goes() -> None:
    """Each join and each leave starts a new epoch. When one member remains, the group starts again."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot, stock_bot(local, SPARE) as spare:
        first, second = await connect(bot), await connect(spare)
        await until(lambda: encrypted(first, second), "the first epoch")
        before = local.status()["epoch"]
        async with scripted_member(local, ADA) as ada:
            await ada.meet(BOT)
            await until(lambda: local.status()["epoch"] == before + 1 and encrypted(first, second), "her epoch")
            assert set(local.status()["leaves"]) == {str(BOT), str(SPARE), str(ADA)}
        await until(lambda: local.status()["epoch"] == before + 2 and encrypted(first, second), "the epoch after")
        await second.disconnect()
        await until(lambda: local.status()["epoch"] == 0, "the sole member's reset")
        again = await connect(spare)
        await until(lambda: encrypted(first, again), "keys after the reset")


async def test_messages_go_both_ways() -> None:
    """A bot reads what a person writes, and the local Discord sees what the bot posts, edits and deletes."""
    async with LocalDiscord() as local, stock_bot(local, BOT) as bot:
        seen: list[discord.Message] = []

        @bot.event
        async def on_message(message: discord.Message) -> None:
            seen.append(message)

        greeting = f"<@{BOT}> Good evening"
        await local.post_message(ADA, greeting)
        await until(lambda: seen, "the message")
        assert (seen[0].author.display_name, seen[0].content) == ("Ada", greeting)
        channel = bot.get_channel(601)
        assert isinstance(channel, discord.TextChannel)
        posted = await channel.send("Hello", embed=discord.Embed(title="A card"))
        assert local.messages[-1].content == "Hello"
        assert local.messages[-1].payload["embeds"][0]["title"] == "A card"
        await posted.edit(content="Hello, all")
        assert local.messages[-1].content == "Hello, all"
        await posted.delete()
        assert [message.content for message in local.messages] == [greeting]
