"""What Discord shows of voice channels: who may read what was said there, whether the bot can come in, and the words
that people may say there.

What was said in an age-restricted channel is told in age-restricted channels alone. Discord tells no bot who is of age;
it keeps out of those channels whoever is not, although their permissions would let them in.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import discord

from bot.channel.port import Person
from bot.discord.access import channel_refusal
from bot.texts.text import Text, joined
from bot.viewers import Viewer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from discord.channel import VocalGuildChannel

    from bot.server_settings import ServerSettings
    from voice.transport.discord_gateway import VoiceChannel


FOR_EVERY_AGE = Text(
    "This voice channel has an age limit, but {channel} has none. So I do not write there what is said here."
)
# The channels in which messages are read, and commands typed.
_WITH_AGE = (discord.TextChannel, discord.VoiceChannel, discord.StageChannel, discord.Thread)


def person_of(member: discord.Member) -> Person:
    return Person(member.id, member.display_name, member.bot, role_ids(member))


def role_ids(member: discord.Member) -> frozenset[int]:
    return frozenset(role.id for role in member.roles)


def may_enter(channel: discord.abc.GuildChannel, member: discord.Member) -> bool:
    """Return whether a member may see a voice channel and connect to it."""
    allowed = channel.permissions_for(member)
    return allowed.view_channel and allowed.connect


def vocal_channels(guild: discord.Guild) -> list[VocalGuildChannel]:
    """Return the voice channels and the stages of a server."""
    return [*guild.voice_channels, *guild.stage_channels]


def is_age_allowed(heard_in: VocalGuildChannel, shown_in: object) -> bool:
    """Return whether what was said in one channel may be told in another one, as far as its viewers' age goes."""
    return not heard_in.is_nsfw() or (isinstance(shown_in, _WITH_AGE) and shown_in.is_nsfw())


def viewer_of(
    member: discord.Member,
    settings: ServerSettings,
    *,
    manages: bool,
    is_allowed: Callable[[VocalGuildChannel], bool],
) -> Viewer:
    """Return a member as a viewer. `settings`: of their server. `manages`: they may manage it. `is_allowed`: returns
    whether of a voice channel may be told where they read.

    Discord sends the person's roles with each interaction, so what is made of one is never older than it.
    """
    guild = member.guild
    there = voice_channel_of(member)
    allowed = [each for each in vocal_channels(guild) if is_allowed(each)]
    is_open = settings.opens_history and (manages or any(role.id == settings.history_role for role in member.roles))
    return Viewer(
        str(member.id),
        guild.id,
        frozenset(each.id for each in allowed),
        frozenset(each.id for each in allowed if is_open and may_enter(each, member)),
        None if there is None else there.id,
    )


def member_of(interaction: discord.Interaction) -> discord.Member:
    """Return who uses a command or a button. All of them are on servers, where Discord sends the member."""
    assert isinstance(interaction.user, discord.Member), "nothing can be used in a private message"
    return interaction.user


def voice_channel_of(member: discord.Member) -> VocalGuildChannel | None:
    """Return the voice channel that somebody is in, or None."""
    return None if member.voice is None else member.voice.channel


def channel_name(interaction: discord.Interaction, channel_id: int | None) -> str:
    """Return the name of a voice channel of the server; empty if it is gone."""
    found = None if interaction.guild is None else interaction.guild.get_channel(channel_id or 0)
    return "" if found is None else found.name


def nearest_channels(interaction: discord.Interaction) -> list[int]:
    """Return the channels that the person most likely means: the one they are in, then the one they type in."""
    there = voice_channel_of(member_of(interaction))
    return [each for each in (None if there is None else there.id, interaction.channel_id) if each is not None]


MISSING = Text(
    "I cannot join {channel}. My role needs these permissions there: {permissions}. A server manager can "
    "give them to my role."
)
AFK = Text("{channel} is the channel for people who are away. Nobody can speak there. Call me into another channel.")
FULL = Text(
    "{channel} is full: only {limit} people can be there. Somebody must leave, or a server manager "
    "must raise the limit or give my role the permission Move Members."
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
        """Return the permissions without which there is no session and that the bot lacks there, as Discord calls
        them.
        """
        needed = [
            (Text("View Channel"), self.permissions.view_channel),
            (Text("Connect"), self.permissions.connect),
            # On a stage the bot asks to speak, or makes itself a speaker if it may mute members.
            (Text("Request to Speak"), self.permissions.request_to_speak or self.permissions.mute_members)
            if self.is_stage
            else (Text("Speak"), self.permissions.speak),
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
    return ChannelFacts(
        channel.id,
        channel.name,
        channel.permissions_for(guild.me),
        is_stage=isinstance(channel, discord.StageChannel),
        is_afk=channel == guild.afk_channel,
        is_inside=guild.me.id in channel.voice_states,
        people=len(channel.voice_states),
        limit=channel.user_limit,
    )


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
