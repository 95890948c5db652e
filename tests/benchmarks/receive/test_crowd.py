"""The crowd is in the encrypted group, and what it sends is heard by a link as by any client."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import discord
import pytest

from benchmarks.receive.crowd import Crowd, load_opus
from rehearsal.discord import LocalDiscord
from rehearsal.discord.guild.spec import GuildSpec, Member
from rehearsal.script.scenario_file import scenario_path
from tests.rehearsal.discord.stock import stock_bot, until
from voice.transport.audio_events import AudioEvent, SpeechFrames
from voice.transport.discord_gateway import DiscordMainGateway
from voice.transport.link import VoiceLink

BOT = 1001
PEOPLE = (3001, 3002, 3003, 3004)


@pytest.mark.asyncio
async def test_everybody_in_the_crowd_is_heard_whole() -> None:
    guild = GuildSpec(people=tuple(Member(user_id, f"Person {user_id}") for user_id in PEOPLE))
    heard: list[AudioEvent] = []
    async with LocalDiscord(guild=guild) as local, AsyncExitStack() as stack:
        recordings = sorted(scenario_path("crowd").parent.glob("*.ogg"))
        crowd = Crowd(local, load_opus(recordings, least_s=2.0))
        await crowd.join(PEOPLE)
        client = await stack.enter_async_context(stock_bot(local, BOT))
        channel = client.get_channel(600)
        assert isinstance(channel, discord.VoiceChannel)
        link = await stack.enter_async_context(
            VoiceLink.open(
                DiscordMainGateway(client, channel),
                sink=heard.extend,
                is_excluded=lambda _: False,
                on_event=lambda _: None,
            )
        )
        await crowd.settled(len(PEOPLE) + 1)
        slots = crowd.prepare(BOT, 25, speakers=3)
        crowd.announce(speakers=3)
        sent = await crowd.perform(BOT, slots)
        assert (sent.speech_frames, sent.packets) == (75, 90)
        await until(lambda: link.counters().decoded + link.counters().silence == 90, "all packets")
        counts = link.counters()
        assert (counts.lost, counts.late, counts.dave_failures, counts.transport_failures) == (0, 0, 0, 0)
        await asyncio.sleep(0)
        await until(
            lambda: {e.user_id for e in heard if isinstance(e, SpeechFrames)} == set(PEOPLE[:3]), "three people"
        )
        await crowd.leave()
