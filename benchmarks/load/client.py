"""A plain discord.py client in the local Discord, which is all that the link needs."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import discord
import yarl

from benchmarks.errors import BenchmarkError
from bot.background_task import background_task
from voice.transport.discord_gateway import DiscordMainGateway

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AsyncExitStack

_READY_TIMEOUT_S = 60.0
# discord.py sends 110 messages a minute at most and lets others wait. A thousand joins would take 18 minutes, and most
# of them fail, because a join waits 10 s. The local Discord has no such limit.
_MESSAGES_A_MINUTE = 100_000


async def main_gateway(stack: AsyncExitStack, where: Mapping[str, Any]) -> DiscordMainGateway:
    """Log in to the local Discord at these addresses and return the gateway of its voice channel. `stack` logs out.

    This process has no other Discord afterwards. Raises `BenchmarkError`.
    """
    discord.http.Route.BASE = where["api_base"]
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(where["gateway"])
    tls = ssl.create_default_context(cafile=where["certificate"])
    intents = discord.Intents(guilds=True, voice_states=True)
    client = discord.Client(intents=intents, connector=aiohttp.TCPConnector(ssl=tls))
    await stack.enter_async_context(client)
    await stack.enter_async_context(background_task(client.start(where["token"]), name="discord-client"))
    try:
        async with asyncio.timeout(_READY_TIMEOUT_S):
            await client.wait_until_ready()
    except TimeoutError as error:
        raise BenchmarkError("The local Discord did not let the client in.") from error
    assert hasattr(client.ws, "_rate_limiter"), "discord.py calls it so"
    client.ws._rate_limiter = discord.gateway.GatewayRatelimiter(count=_MESSAGES_A_MINUTE)
    channel = client.get_channel(where["channel_id"])
    assert isinstance(channel, discord.VoiceChannel), "the local Discord has it"
    return DiscordMainGateway(client, channel)
