"""A local Discord on 127.0.0.1, to which stock clients connect with their addresses repointed and nothing else."""

from __future__ import annotations

from rehearsal.discord.guild import Channel, GuildSpec, Member
from rehearsal.discord.interactions import InteractionResult, Reply
from rehearsal.discord.network import Network
from rehearsal.discord.server import LocalDiscord
from rehearsal.discord.world import PostedMessage, VoiceCredentials

__all__ = [
    "Channel",
    "GuildSpec",
    "InteractionResult",
    "LocalDiscord",
    "Member",
    "Network",
    "PostedMessage",
    "Reply",
    "VoiceCredentials",
]
