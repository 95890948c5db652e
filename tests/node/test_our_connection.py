"""Our connection hears @discordjs/voice, and again after each drop of its voice websocket."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rehearsal.pytest_plugin import DiscordForTests
from tests.node.client import node_client
from tests.rehearsal.discord.stock import until
from tests.voice.transport.connection_scene import example_bot, open_scene
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


@pytest.mark.usefixtures("in_tmp_path")
async def test_the_example_for_other_bots_hears_it(
    independent_client: Path, local_discord: DiscordForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bot of the example, which has a `voice.HearingClient`, tells how long the tone is."""
    bot, local = example_bot(monkeypatch), local_discord.discord
    async with (
        local_discord.bot(bot),
        node_client(local, independent_client, user_id=CHLOE, listen=BOT, record=tmp_path / "heard.pcm") as node,
    ):
        await until(lambda: local.status()["voice_states"], "the client in the channel")
        await local.invoke(CHLOE, "record")
        await node.event("ready")
        await node.play(local, CHLOE)
        await until(lambda: bot.voice_clients[0].counters().talkspurts, "the end of the tone")
        await local.invoke(CHLOE, "stop")
        await until(lambda: len(local.messages) == 3, "what the bot tells")
        await node.stop()
    assert re.fullmatch(rf"<@{CHLOE}> spoke (0\.[89]|1\.[0-4]) s", local.messages[-1].content)
