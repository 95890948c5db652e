"""A local Discord on 127.0.0.1. Unmodified Discord clients can use it once their server addresses point to it."""

from __future__ import annotations

from rehearsal.discord.guild import Channel, GuildSpec, Member
from rehearsal.discord.guild_state import PostedMessage, VoiceCredentials
from rehearsal.discord.interaction_result import InteractionReply, InteractionResult
from rehearsal.discord.network import NetworkConditions
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
