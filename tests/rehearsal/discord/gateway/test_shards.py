"""Several guilds of one local Discord, and bots that divide them into shards."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import discord
import pytest

from rehearsal.discord import GuildSpec, LocalDiscord
from rehearsal.discord.guild.spec import Channel
from tests.patience import PATIENCE_S
from tests.rehearsal.discord.stock import repointed, shows_guilds, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BOT, ADA = 1001, 2001
EVEN = GuildSpec(id=4 << 22, name="Even")
ODD = GuildSpec(
    id=5 << 22, name="Odd", voice_channels=(Channel(700, "Odd evening"),), text_channel=Channel(701, "odd chat")
)


class Sharded(discord.AutoShardedClient):
    """An unmodified client that notes what it gets."""

    def __init__(self, **options: Any) -> None:
        super().__init__(intents=discord.Intents.default(), guild_ready_timeout=0.1, **options)
        self.messages: list[str] = []
        self.moves: list[tuple[int, str]] = []

    async def on_message(self, message: discord.Message) -> None:
        """Note a message."""
        self.messages.append(message.content)

    async def on_voice_state_update(
        self, member: discord.Member, before: discord.VoiceState, after: discord.VoiceState
    ) -> None:
        """Note who moved where."""
        self.moves.append((member.guild.id, member.name))


@contextlib.asynccontextmanager
async def sharded(local: LocalDiscord, **options: Any) -> AsyncIterator[Sharded]:
    """Log in and wait until the client is ready."""
    tls = ssl.create_default_context(cafile=str(local.certificate_path))
    with repointed(local):
        async with Sharded(connector=aiohttp.TCPConnector(ssl=tls), **options) as client:
            running = asyncio.create_task(client.start(f"{BOT}.test"), name="sharded-bot")
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await client.wait_until_ready()
                await until(lambda: shows_guilds(client), "seeing its guilds")
                yield client
            finally:
                await client.close()
                await asyncio.wait({running}, timeout=PATIENCE_S)


@pytest.mark.asyncio
async def test_a_shard_gets_the_events_of_its_guilds_only() -> None:
    """Two clients with a shard each: messages and moves of a guild reach only its shard, which can answer there."""
    async with (
        LocalDiscord(guild=EVEN) as even,
        LocalDiscord(guild=ODD, beside=even) as odd,
        sharded(even, shard_ids=[0], shard_count=2) as first,
        sharded(even, shard_ids=[1], shard_count=2) as second,
    ):
        assert [guild.name for guild in first.guilds] == ["Even"]
        assert [guild.name for guild in second.guilds] == ["Odd"]
        to_even, to_odd = f"<@{BOT}> to the even", f"<@{BOT}> to the odd"
        await even.post_message(ADA, to_even)
        await odd.post_message(ADA, to_odd)
        await odd.join(ADA)
        await even.join(ADA)
        await until(lambda: first.messages and first.moves and second.messages and second.moves, "the events")
        assert (first.messages, second.messages) == ([to_even], [to_odd])
        assert (first.moves, second.moves) == ([(EVEN.id, "ada")], [(ODD.id, "ada")])
        channel = second.get_channel(701)
        assert isinstance(channel, discord.TextChannel)
        await channel.send("from the odd")
        await until(lambda: second.messages[-1] == "from the odd", "its own message")
        assert odd.messages[-1].content == "from the odd"
        assert first.messages == [to_even]


@pytest.mark.asyncio
@pytest.mark.parametrize("shard", [[2, 2], [0], ["a", 2], [-1, 2], 3])
async def test_a_shard_that_cannot_be_is_refused(shard: object) -> None:
    """Discord closes the connection with code 4010."""
    async with (
        LocalDiscord() as local,
        aiohttp.ClientSession() as session,
        session.ws_connect(local.gateway_url) as socket,
    ):
        await socket.receive_json()
        await socket.send_json({"op": 2, "d": {"token": f"{BOT}.test", "intents": 0, "shard": shard}})
        closed = await socket.receive(timeout=PATIENCE_S)
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 4010)
