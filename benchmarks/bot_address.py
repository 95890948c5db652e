"""Where a bot in another process finds a local Discord, as a message to that process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID

if TYPE_CHECKING:
    from benchmarks.report import Json
    from rehearsal.discord.server import LocalDiscord


def bot_address(discord: LocalDiscord) -> dict[str, Json]:
    """Return the addresses, the bot's token, and the guild with its first voice channel."""
    return {
        "token": f"{ROOMTONE_BOT_ID}.local.benchmark",
        "api_base": discord.api_base,
        "gateway": discord.gateway_url,
        "ca_file": str(discord.certificate_path),
        "guild_id": discord.guild.id,
        "channel_id": discord.guild.voice_channels[0].id,
    }
