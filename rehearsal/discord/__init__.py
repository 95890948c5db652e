"""A local Discord on 127.0.0.1. Unmodified Discord clients can use it once their server addresses point to it."""

from __future__ import annotations

from rehearsal.discord.guild.spec import Channel, GuildSpec, Member
from rehearsal.discord.guild.state import PostedMessage, VoiceCredentials
from rehearsal.discord.interactions.result import InteractionReply, InteractionResult
from rehearsal.discord.media.forwarder import NetworkConditions
from rehearsal.discord.server import LocalDiscord

__all__ = [
    "Channel",
    "GuildSpec",
    "InteractionReply",
    "InteractionResult",
    "LocalDiscord",
    "Member",
    "NetworkConditions",
    "PostedMessage",
    "VoiceCredentials",
]
