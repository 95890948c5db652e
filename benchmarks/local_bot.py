"""The whole bot in another process than its local Discord: where it finds that, and how it comes into the channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bot.app import RunningBot, running_bot
from bot.local_zone import LocalZone
from bot.tuning import split_overrides
from bot.wiring.settings import BotSettings
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager, AsyncExitStack

    from benchmarks.report import Json
    from bot.events import Event
    from rehearsal.discord.server import LocalDiscord


def bot_address(discord: LocalDiscord) -> dict[str, Json]:
    """Return the addresses, the bot's token, and the guild with its first voice channel, for a message."""
    return {
        "token": f"{discord.guild.bots[0].id}.local.benchmark",
        "api_base": discord.api_base,
        "gateway": discord.gateway_url,
        "certificate": str(discord.certificate_path),
        "guild_id": discord.guild.id,
        "channel_id": discord.guild.voice_channels[0].id,
    }


def settings_at(address: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings of a bot at a `bot_address`, in place of those of the operator's own."""
    return {
        "discord.token": address["token"],
        "discord.api_base": address["api_base"],
        "tuning.discord_certificate": address["certificate"],
        "discord.guilds": (),
        # The people are made up: nothing of them belongs into the operator's memory.
        "storage.database_url": None,
    }


def bot_at(
    settings: Mapping[str, Any],
    address: Mapping[str, Any],
    observe: Callable[[Event], None],
    on_loaded: Callable[[], None] = lambda: None,
) -> AbstractAsyncContextManager[RunningBot]:
    """Run the bot with these settings at a `bot_address`. `on_loaded`: called before it connects."""
    tuning, chosen = split_overrides({**settings, **settings_at(address)})
    parts = BotSettings.from_schema(load(overrides=chosen), tuning)
    return running_bot(parts, observe=observe, rejoin=False, zone=LocalZone(), on_loaded=on_loaded)


async def join_bot(
    stack: AsyncExitStack, settings: Mapping[str, Any], address: Mapping[str, Any], observe: Callable[[Event], None]
) -> None:
    """Run the bot with these settings in the voice channel at a `bot_address` until `stack` is closed."""
    bot = await stack.enter_async_context(bot_at(settings, address, observe))
    channel = bot.client.find_channel(address["guild_id"], address["channel_id"])
    assert channel is not None, "the local Discord has it"
    await bot.rooms.join(channel)
