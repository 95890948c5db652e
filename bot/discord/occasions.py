"""Finds texts of a server with words that people may say in a voice channel: topics and the titles of events.

They are those alone that everybody on the server, or everybody who may enter the channel, can read too, because a
recogniser sometimes writes a word that it expects although nobody has said it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import discord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from voice.transport.discord_gateway import VoiceChannel

# Events that go on or come.
_AHEAD = (discord.EventStatus.active, discord.EventStatus.scheduled)
# How many are of use. The recogniser takes a few words of each, and all together cost it 80 tokens at most.
MOST_EVENTS = 2
MOST_TOPICS = 2
MOST_EVENTS_ELSEWHERE = 2


def occasions_of(channel: VoiceChannel) -> list[str]:
    """Return the topic of a stage, the channel's events, the topics of text channels beside it (of the same category),
    and the server's other events, in this order.
    """
    events = [event for event in channel.guild.scheduled_events if event.status in _AHEAD]
    # What goes on now comes first, then what comes next.
    events.sort(key=lambda event: (event.status is not discord.EventStatus.active, event.start_time))
    here = (event.name for event in events if event.channel_id == channel.id)
    elsewhere = (event.name for event in events if event.channel_id != channel.id and _is_known(event, channel))
    return [
        *_stage_topic(channel),
        *islice(here, MOST_EVENTS),
        *islice(_topics_beside(channel), MOST_TOPICS),
        *islice(elsewhere, MOST_EVENTS_ELSEWHERE),
    ]


def _stage_topic(channel: VoiceChannel) -> list[str]:
    if not isinstance(channel, discord.StageChannel):
        # Discord tells bots no topic of a voice channel, and its status is where the bot says that it listens.
        return []
    topic = channel.topic if channel.instance is None else channel.instance.topic
    return [topic] if topic else []


def _topics_beside(channel: VoiceChannel) -> Iterator[str]:
    for other in channel.guild.text_channels:
        if other.topic and other.category_id == channel.category_id and _is_as_open(other, channel):
            yield other.topic


def _is_known(event: discord.ScheduledEvent, channel: VoiceChannel) -> bool:
    """Return whether people in the channel know of an event: it is at no channel, or at one that they see."""
    if event.channel_id is None:
        return True
    other = channel.guild.get_channel(event.channel_id)
    return other is not None and _is_as_open(other, channel)


def _is_as_open(other: discord.abc.GuildChannel, channel: VoiceChannel) -> bool:
    """Return whether the bot sees another channel, and so does everybody on the server or whoever sees this one."""
    guild = channel.guild
    if not other.permissions_for(guild.me).view_channel:
        return False
    return other.permissions_for(guild.default_role).view_channel or other.overwrites == channel.overwrites
