"""Where a bot in another process finds a local Discord: as a message to that process, and as the bot's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report import Json
    from rehearsal.discord.server import LocalDiscord


def bot_address(discord: LocalDiscord) -> dict[str, Json]:
    """Return the addresses, the bot's token, and the guild with its first voice channel."""
    return {
        "token": f"{ROOMTONE_BOT_ID}.local.benchmark",
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
