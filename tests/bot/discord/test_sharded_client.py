"""The bot's client with several shards, in a local Discord with several guilds."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, patch

import discord
import pytest
import structlog
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.discord.client import DISCORD_AWAY_S, ShardLosses
from bot.discord.connection import chosen_shards, connected
from bot.discord.dashboard_access import KEPT_S, RETRY_S, ChannelNames
from bot.errors import SetupError
from bot.settings import DiscordSettings
from bot.shards import ONLY_SHARD, Shards, whole
from bot.texts.text import in_language
from rehearsal.discord.gateway.sessions import SESSION_STARTS
from rehearsal.discord.guild.spec import Channel, GuildSpec
from rehearsal.discord.server import LocalDiscord
from rehearsal.pytest_plugin import open_discord
from tests.bot.discord.client import ADA, FakeRooms, settings_for
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S, settle
from voice.transport.discord_gateway import DiscordMainGateway

EVEN = GuildSpec(id=4 << 22, name="Even")
ODD = GuildSpec(
    id=5 << 22, name="Odd", voice_channels=(Channel(700, "Odd evening"),), text_channel=Channel(701, "odd chat")
)
ODD_SHARD = Shards((1,), 2)


async def test_a_process_serves_the_guilds_of_its_shards() -> None:
    """It knows only its own guilds, hears of moves there alone, and leaves the commands to the process with shard 0."""
    rooms = FakeRooms()
    async with (
        open_discord(EVEN) as even,
        open_discord(ODD, beside=even) as odd,
        connected(settings_for(even.discord), rooms, shards=ODD_SHARD) as client,
    ):
        assert [guild.id for guild in client.guilds] == [ODD.id]
        assert client.find_channel(EVEN.id, 600) is None
        assert not even.discord.state.commands(1001, None), "shard 0 registers them"
        await even.discord.join(ADA)
        await odd.discord.join(ADA)
        await rooms.told.wait()
        assert [guild_id for guild_id, _, _ in rooms.movements] == [ODD.id]
    async with open_discord(EVEN) as even, connected(settings_for(even.discord), rooms, shards=whole(2)):
        assert even.discord.state.commands(1001, None)


async def test_names_of_servers_of_other_shards_are_asked_for() -> None:
    """Once in ten minutes, as far as they are there. A channel is named only with the server that it belongs to, and
    nothing is asked about the own servers.
    """
    clock = FakeClock()
    async with (
        open_discord(EVEN) as even,
        open_discord(ODD, beside=even),
        connected(settings_for(even.discord), FakeRooms(), shards=ODD_SHARD) as client,
    ):
        names = ChannelNames(client, clock, within_s=PATIENCE_S)
        there, gone, other = (EVEN.id, 600), (EVEN.id, 999), (EVEN.id + (2 << 22), 600)
        own = (ODD.id, client.guilds[0].voice_channels[0].id)
        room = client.guilds[0].voice_channels[0].name
        found, second = await asyncio.gather(names.of({there, gone, other, own, (ODD.id, 1)}), names.of({there, own}))
        assert found == {there: ("Even", even.discord.guild.channels[0].name), own: ("Odd", room)}
        assert second == found, "a second page waits for the first one's names"
        asked = AsyncMock(side_effect=OSError)
        with patch.object(client, "fetch_guild", asked), patch.object(client, "fetch_channel", asked):
            assert await names.of({there, gone, own}) == found
            asked.assert_not_awaited()
            clock.advance(KEPT_S)
            with capture_logs() as logged:
                assert await names.of({there, own}) == found, "what was last known"
                assert await names.of({there, own}) == found
        assert [each["event"] for each in logged] == ["name_not_fetched"] * 2, "the server and the channel, once"


async def test_a_page_does_not_wait_for_names_that_do_not_come() -> None:
    """Discord is silent: the page is shown without names, and half a minute later a page asks again."""
    clock = FakeClock()
    async with (
        open_discord(EVEN) as even,
        open_discord(ODD, beside=even),
        connected(settings_for(even.discord), FakeRooms(), shards=ODD_SHARD) as client,
    ):
        room_channel = (EVEN.id, 600)
        names = ChannelNames(client, clock, within_s=PATIENCE_S)

        async def silent(_: int, **__: bool) -> None:
            # As if the time were over: passed for the whole loop, discord.py would connect anew.
            raise TimeoutError

        with patch.object(client, "fetch_guild", silent), patch.object(client, "fetch_channel", silent):
            assert await names.of({room_channel}) == {}
        assert await names.of({room_channel}) == {}
        clock.advance(RETRY_S)
        assert list(await names.of({room_channel})) == [room_channel]


async def test_the_shard_of_a_server_is_asked_whether_it_is_open() -> None:
    """One shard loses its connection: the rooms of its servers know, those of the others do not mind. /status and the
    log name it, and it comes back.
    """
    async with (
        open_discord(EVEN) as even,
        open_discord(ODD, beside=even),
        connected(settings_for(even.discord), FakeRooms(), shards=whole(2)) as client,
    ):
        gateways = {each.id: DiscordMainGateway(client, each.voice_channels[0]) for each in client.guilds}
        assert [each.is_open for each in gateways.values()] == [True, True]
        assert isinstance(client, discord.AutoShardedClient)
        lost = client.shards[1]
        await lost.disconnect()
        assert [gateways[EVEN.id].is_open, gateways[ODD.id].is_open] == [True, False]
        await settle(lambda: list(client.shard_losses.away) == [1])
        await lost.reconnect()
        await settle(lambda: gateways[ODD.id].is_open and not client.shard_losses.away)


def test_a_lost_shard_is_named_in_status_and_log() -> None:
    """The sentence says which shard, since when, and what that means, in every language."""
    clock = FakeClock()
    losses = ShardLosses(whole(4), clock)
    with structlog.testing.capture_logs() as logged:
        losses.lost(2)
        clock.advance(30.0)
        losses.lost(2)
        (fault,) = losses.faults()
        told = fault.status(clock.monotonic())
        losses.back(2, resumed=True)
        losses.back(2, resumed=True)
    assert "shard 2 of 4" in told
    assert "30 seconds" in told
    assert not fault.blocks
    assert "Shard 2 von 4" in in_language(told, "de")
    assert losses.faults() == []
    assert [(line["event"], line["shard"]) for line in logged] == [("shard_disconnected", 2), ("shard_connected", 2)]
    assert logged[1]["away_s"] == 30.0


def test_a_connection_that_is_away_for_long_keeps_the_bot_from_its_work() -> None:
    """Losses of seconds do not: discord.py mends them. Several shards are told together; the only one has no number."""
    clock = FakeClock()
    losses, only = (ShardLosses(shards, clock) for shards in (Shards((4, 5, 6, 7), 16), ONLY_SHARD))
    for shard in (4, 5):
        losses.lost(shard)
    only.lost(0)
    clock.advance(DISCORD_AWAY_S - 1)
    assert [fault.blocks for fault in (*losses.faults(), *only.faults())] == [False, False]
    clock.advance(1)
    losses.lost(7)
    long, short = losses.faults()
    assert (long.blocks, short.blocks) == (True, False)
    assert "for shard 4-5 of 16" in long.what
    (alone,) = only.faults()
    assert alone.blocks
    assert "shard" not in alone.what


@pytest.mark.parametrize("local_guild", [EVEN])
async def test_discords_recommendation_and_limit_are_heeded(local: LocalDiscord) -> None:
    """`auto` takes as many shards as Discord says. Fewer are pointed out. A start is refused when no more are allowed,
    and a bot with one shard asks nothing.
    """
    local.gateway.recommended_shards = 3
    assert await chosen_shards(settings_for(local), None) == whole(3)
    with structlog.testing.capture_logs() as logged:
        assert await chosen_shards(settings_for(local), whole(2)) == whole(2)
    assert [line["event"] for line in logged] == ["fewer_shards_than_recommended"]
    local.gateway.sessions.starts[1001] = SESSION_STARTS - 1
    with pytest.raises(SetupError, match=r"1 of 1000.*2"):
        await chosen_shards(settings_for(local), Shards((4, 5), 8))
    with pytest.raises(SetupError, match="refused"):
        await chosen_shards(settings_for(local, token="9999.nobody"), None)
    for absurd in (0, 1_000_000_000):
        local.gateway.recommended_shards = absurd
        with pytest.raises(SetupError, match="how many"):
            await chosen_shards(settings_for(local), None)
    with pytest.raises(SetupError, match="reached"):
        await chosen_shards(DiscordSettings(token=SecretStr("1.x"), api_base="http://127.0.0.1:9/api/v10"), None)
    assert await chosen_shards(settings_for(local), ONLY_SHARD) == ONLY_SHARD
