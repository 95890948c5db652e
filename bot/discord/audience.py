"""Which voice channels somebody may see and enter: what was said there may be told to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import discord

if TYPE_CHECKING:
    from collections.abc import Iterator


def may_enter(channel: discord.abc.GuildChannel, member: discord.Member) -> bool:
    """Return whether a member may see a voice channel and connect to it."""
    allowed = channel.permissions_for(member)
    return allowed.view_channel and allowed.connect


def readable_channels(interaction: discord.Interaction) -> dict[int, str]:
    """Return the voice and stage channels of the server that the person may enter now, by id, with their names.

    Discord sends the person's roles with each interaction, so this is never older than the interaction.
    """
    member, guild = interaction.user, interaction.guild
    if guild is None or not isinstance(member, discord.Member):
        return {}
    voice = (*guild.voice_channels, *guild.stage_channels)
    return {each.id: each.name for each in voice if may_enter(each, member)}


def nearest_channels(interaction: discord.Interaction) -> Iterator[int]:
    """Yield the channel that the person most likely means, if any: the one they are in, then the one they type in."""
    member = interaction.user
    if isinstance(member, discord.Member) and member.voice is not None and member.voice.channel is not None:
        yield member.voice.channel.id
    if interaction.channel_id is not None:
        yield interaction.channel_id
