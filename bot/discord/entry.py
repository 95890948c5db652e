"""Decides whether the bot can come into a voice channel, and says in one sentence why not. Pure, but for `look_at`.

It is asked before every connection: after /join, when somebody moves the bot, when it comes by itself, and after a
crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import discord

from bot.discord.access import channel_refusal
from bot.texts.text import Text, joined

if TYPE_CHECKING:
    from collections.abc import Collection

    from voice.transport.discord_gateway import VoiceChannel

# The permissions without which there is no session, as Discord calls them. On a stage the bot asks to speak.
VIEW = Text("View Channel")
CONNECT = Text("Connect")
SPEAK = Text("Speak")
REQUEST = Text("Request to Speak")

MISSING = Text("I may not come into {channel}: my role lacks {permissions} there. A moderator can add that.")
AFK = Text("{channel} is the channel for people who are away, where nobody can speak. Call me into another one.")
FULL = Text(
    "{channel} is full: it has room for {limit}. Make room or raise its limit, or give my role the permission Move "
    "Members."
)


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """What the decision needs to know of a channel. `permissions`: the bot's there. `is_inside`: the bot is in it.

    `people`: how many are connected, bots too. `limit`: how many may be; 0: any number.
    """

    id: int
    name: str
    permissions: discord.Permissions
    is_stage: bool = False
    is_afk: bool = False
    is_inside: bool = False
    people: int = 0
    limit: int = 0

    def missing(self) -> list[Text]:
        """Return the permissions that the bot lacks there."""
        needed = [
            (VIEW, self.permissions.view_channel),
            (CONNECT, self.permissions.connect),
            # Who may mute members on a stage makes itself a speaker.
            (REQUEST, self.permissions.request_to_speak or self.permissions.mute_members)
            if self.is_stage
            else (SPEAK, self.permissions.speak),
        ]
        return [name for name, granted in needed if not granted]


def entry_refusal(channel: ChannelFacts, *, chosen_here: Collection[int] = ()) -> Text | None:
    """Return why the bot cannot come, for people, or None.

    `chosen_here`: the channels that the server has chosen; empty: all.
    """
    refused = channel_refusal(channel.id, channel.name, chosen_here)
    if refused is not None:
        return refused
    if channel.is_afk:
        return AFK.fill(channel=channel.name)
    missing = channel.missing()
    if missing:
        return MISSING.fill(channel=channel.name, permissions=joined(missing, ", "))
    # Who may move members comes in all the same.
    if (
        channel.limit
        and channel.people >= channel.limit
        and not (channel.is_inside or channel.permissions.move_members)
    ):
        return FULL.fill(channel=channel.name, limit=channel.limit)
    return None


def look_at(channel: VoiceChannel) -> ChannelFacts:
    """Return the facts of a channel as Discord knows it now."""
    guild = channel.guild
    afk = guild.afk_channel
    return ChannelFacts(
        channel.id,
        channel.name,
        channel.permissions_for(guild.me),
        is_stage=isinstance(channel, discord.StageChannel),
        is_afk=afk is not None and afk.id == channel.id,
        is_inside=guild.me.id in channel.voice_states,
        people=len(channel.voice_states),
        limit=channel.user_limit,
    )
