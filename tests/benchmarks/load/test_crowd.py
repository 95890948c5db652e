"""The crowd is in the encrypted group, and what it sends is heard by a connection as by any client."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import discord
import pytest

from benchmarks.load.crowd import Crowd
from benchmarks.load.talk import bundled_recordings, without_pauses
from rehearsal.discord import LocalDiscord
from rehearsal.discord.guild.spec import GuildSpec, Member
from tests.rehearsal.discord.stock import stock_bot, until
from voice.transport.audio_events import AudioEvent, SpeechFrames
from voice.transport.connection import DiscordVoiceConnection
from voice.transport.discord_gateway import DiscordMainGateway

BOT = 1001
PEOPLE = (3001, 3002, 3003, 3004)


@pytest.mark.parametrize("in_step", [False, True])
async def test_everybody_in_the_crowd_is_heard_whole(in_step: bool) -> None:
    """Nothing is lost, whether their packets come at the same moments or not, of those who pause neither."""
    guild = GuildSpec(people=tuple(Member(user_id, f"Person {user_id}") for user_id in PEOPLE))
    heard: list[AudioEvent] = []
    async with LocalDiscord(guild=guild) as local, AsyncExitStack() as stack:
        crowd = Crowd(local)
        await crowd.join(PEOPLE)
        client = await stack.enter_async_context(stock_bot(local, BOT))
        channel = client.get_channel(600)
        assert isinstance(channel, discord.VoiceChannel)
        connection = await stack.enter_async_context(
            DiscordVoiceConnection(
                DiscordMainGateway(client, channel),
                sink=heard.extend,
                heard_since=lambda _: float("-inf"),
                on_event=lambda _: None,
            )
        )
        await crowd.settled(len(PEOPLE) + 1)
        *talks, last = without_pauses(bundled_recordings(), people=3, frames=75)
        pausing = (*last[:25], *last[-5:], *(None,) * 20, *last[50:75], *last[-5:])
        slots = await crowd.prepare(BOT, [*talks, pausing])
        crowd.announce(speakers=3)
        sent = await crowd.perform(BOT, slots, in_step=in_step)
        assert sent.packets == 2 * 80 + 60
        await until(lambda: connection.counters().decoded + connection.counters().silence == 220, "all packets")
        counts = connection.counters()
        assert (counts.lost, counts.late, counts.dave_failures, counts.transport_failures) == (0, 0, 0, 0)
        assert counts.talkspurts == 4
        await asyncio.sleep(0)
        await until(
            lambda: {e.user_id for e in heard if isinstance(e, SpeechFrames)} == set(PEOPLE[:3]), "three people"
        )
