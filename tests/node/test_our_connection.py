"""Our connection hears @discordjs/voice, and again after each drop of its voice websocket."""

from __future__ import annotations

from pathlib import Path

import pytest

import voice
from rehearsal.pytest_plugin import DiscordForTests
from tests.node.client import node_client
from tests.rehearsal.discord.stock import stock_bot, until
from tests.voice.transport.connection_scene import open_scene, voice_channel
from voice.transport.connection_events import Connected

pytestmark = pytest.mark.node

BOT, CHLOE = 1001, 2003


async def test_it_is_heard_after_each_of_three_drops(
    independent_client: Path, local_discord: DiscordForTests, tmp_path: Path
) -> None:
    """After each 4006 a new connection is made, and the whole tone of a second is heard over it."""
    record = tmp_path / "heard.pcm"
    async with (
        open_scene(local_discord, tmp_path) as room,
        node_client(room.local, independent_client, user_id=CHLOE, listen=BOT, record=record) as node,
    ):
        await node.event("ready")
        connected = 0
        for drops in range(4):
            # On a busy machine the first attempt may fail, too.
            await until(
                lambda: room.listener.kinds().count(Connected) > connected and room.listener.kinds()[-1] is Connected,  # noqa: B023
                "coming back",
            )
            connected = room.listener.kinds().count(Connected)
            await until(lambda: CHLOE in room.connection.members and room.connection.privacy_code, "the group")
            before = room.listener.seconds_of(CHLOE)
            await node.play(room.local, CHLOE)
            await node.event("played")
            await until(lambda: room.listener.seconds_of(CHLOE) - before > 0.8, "the tone")  # noqa: B023
            if drops < 3:
                await room.local.fault("kill_voice_websocket", user_id=BOT, close_code=4006)
        await node.stop()


async def test_the_client_for_other_bots_hears_it(
    independent_client: Path, local_discord: DiscordForTests, tmp_path: Path
) -> None:
    """A bot of discord.py that connects with `voice.HearingClient` gets the whole tone as events."""
    async with stock_bot(local_discord.discord, BOT) as client:
        hearing = await voice_channel(client).connect(cls=voice.HearingClient)
        async with node_client(
            local_discord.discord, independent_client, user_id=CHLOE, listen=BOT, record=tmp_path / "heard.pcm"
        ) as node:
            await node.event("ready")
            await node.play(local_discord.discord, CHLOE)
            seconds = 0.0
            async for event in hearing.events():
                if isinstance(event, voice.SpeechFrames) and event.user_id == CHLOE:
                    seconds += len(event.pcm) / 16_000
                    if seconds > 0.8:
                        break
            await node.stop()
        await hearing.disconnect()
