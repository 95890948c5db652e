"""Which voice channels somebody may see and enter: what was said there may be told to them.

What was said in an age-restricted channel is told in age-restricted channels alone. Discord tells no bot who is of age;
it keeps out of those channels whoever is not, although their permissions would let them in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import discord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discord.channel import VocalGuildChannel


# The channels in which messages are read, and commands typed.
_WITH_AGE = (discord.TextChannel, discord.VoiceChannel, discord.StageChannel, discord.Thread)


def may_enter(channel: discord.abc.GuildChannel, member: discord.Member) -> bool:
    """Return whether a member may see a voice channel and connect to it."""
    allowed = channel.permissions_for(member)
    return allowed.view_channel and allowed.connect


def is_told_in(heard_in: VocalGuildChannel, told_in: object) -> bool:
    """Return whether what was said in one channel may be told in another one, as far as its readers' age goes."""
    return not heard_in.is_nsfw() or (isinstance(told_in, _WITH_AGE) and told_in.is_nsfw())


def readable_channels(interaction: discord.Interaction) -> dict[int, str]:
    """Return the voice and stage channels of the server whose words the person may read here and now, by id, with their
    names: those that they may enter.

    Discord sends the person's roles with each interaction, so this is never older than the interaction.
    """
    member, guild = interaction.user, interaction.guild
    if guild is None or not isinstance(member, discord.Member):
        return {}
    voice = (*guild.voice_channels, *guild.stage_channels)
    return {each.id: each.name for each in voice if may_enter(each, member) and is_told_in(each, interaction.channel)}


def nearest_channels(interaction: discord.Interaction) -> Iterator[int]:
    """Yield the channel that the person most likely means, if any: the one they are in, then the one they type in."""
    member = interaction.user
    if isinstance(member, discord.Member) and member.voice is not None and member.voice.channel is not None:
        yield member.voice.channel.id
    if interaction.channel_id is not None:
        yield interaction.channel_id
