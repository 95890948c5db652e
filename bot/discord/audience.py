"""Finds out what `bot.readers` has to know of a member: which channels may be told where they ask, and what is open to
them.

What was said in an age-restricted channel is told in age-restricted channels alone. Discord tells no bot who is of age;
it keeps out of those channels whoever is not, although their permissions would let them in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import discord

from bot.readers import Reader
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from discord.channel import VocalGuildChannel

    from bot.server_settings import ServerSettings


FOR_EVERY_AGE = Text(
    "This voice channel is age-restricted and {channel} is not, so I write nothing there of what is said here."
)
# The channels in which messages are read, and commands typed.
_WITH_AGE = (discord.TextChannel, discord.VoiceChannel, discord.StageChannel, discord.Thread)


def may_enter(channel: discord.abc.GuildChannel, member: discord.Member) -> bool:
    """Return whether a member may see a voice channel and connect to it."""
    allowed = channel.permissions_for(member)
    return allowed.view_channel and allowed.connect


def is_told_in(heard_in: VocalGuildChannel, told_in: object) -> bool:
    """Return whether what was said in one channel may be told in another one, as far as its readers' age goes."""
    return not heard_in.is_nsfw() or (isinstance(told_in, _WITH_AGE) and told_in.is_nsfw())


def reader_of(
    member: discord.Member,
    settings: ServerSettings,
    *,
    manages: bool,
    is_told: Callable[[VocalGuildChannel], bool],
) -> Reader:
    """Return a member as a reader. `settings`: of their server. `manages`: they may manage it. `is_told`: returns
    whether of a voice channel may be told where they read.

    Discord sends the person's roles with each interaction, so what is made of one is never older than it.
    """
    guild = member.guild
    told = [each for each in (*guild.voice_channels, *guild.stage_channels) if is_told(each)]
    is_open = settings.opens_history and (manages or any(role.id == settings.history_role for role in member.roles))
    return Reader(
        str(member.id),
        guild.id,
        frozenset(each.id for each in told),
        frozenset(each.id for each in told if is_open and may_enter(each, member)),
        None if member.voice is None or member.voice.channel is None else member.voice.channel.id,
    )


def channel_name(interaction: discord.Interaction, channel_id: int | None) -> str:
    """Return the name of a voice channel of the server; empty if it is gone."""
    found = None if interaction.guild is None else interaction.guild.get_channel(channel_id or 0)
    return "" if found is None else found.name


def nearest_channels(interaction: discord.Interaction) -> Iterator[int]:
    """Yield the channel that the person most likely means, if any: the one they are in, then the one they type in."""
    member = interaction.user
    if isinstance(member, discord.Member) and member.voice is not None and member.voice.channel is not None:
        yield member.voice.channel.id
    if interaction.channel_id is not None:
        yield interaction.channel_id
