"""Finds out what somebody may see on the dashboard, by their roles and permissions on the bot's servers.

Nobody who logs in with Discord sees the rooms of age-restricted channels, not even moderators: Discord tells no bot who
is of age, and asks people itself where they enter such a channel (`bot.discord.audience`). There the commands tell them
what was said. Only the operator's login link shows these rooms.

Implements `bot.dashboard.access.Directory`.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Final

import discord
import structlog

from bot.dashboard.access import Access
from bot.discord.access import CommandUser
from bot.discord.audience import may_enter, reader_of
from bot.discord.command_tree import has_chosen_role
from bot.discord.place_names import PlaceNames
from bot.discord.request_errors import REQUEST_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from bot.discord.client import RoomtoneClient
    from bot.discord.place_names import PlaceId
    from bot.readers import Reader
    from bot.server_settings import ServerSettingsBook

log = structlog.get_logger()

# To ask Discord about one person on one server.
MEMBER_TIMEOUT_S: Final = 5.0
# How long it is believed that somebody is not on a server. A bot may be on hundreds, and all that it asks counts for
# one limit of Discord's. Who joins a server waits this long at most until they see its rooms.
ABSENT_S: Final = 300.0
MOST_ABSENT: Final = 20_000


class DiscordDirectory:
    """The servers of the connected client. `servers`: what each of them has chosen. `monotonic`: seconds."""

    def __init__(
        self,
        client: RoomtoneClient,
        servers: ServerSettingsBook,
        *,
        monotonic: Callable[[], float],
    ) -> None:
        self._servers = servers
        self._client = client
        self._names = PlaceNames(client, monotonic=monotonic)
        self._monotonic = monotonic
        # By server and person: when Discord said that they are not there, the oldest first.
        self._absent: dict[tuple[int, int], float] = {}

    @property
    def client_id(self) -> int | None:
        """See `Directory.client_id`."""
        return self._client.application_id

    async def names(self, places: Collection[PlaceId]) -> Mapping[PlaceId, tuple[str, str]]:
        """See `Directory.names`."""
        return await self._names.of(places)

    async def access_of(self, user_id: int) -> Access:
        """See `Directory.access_of`."""
        channels: dict[int, frozenset[int]] = {}
        prompts: set[int] = set()
        readers: dict[int, Reader] = {}
        now = self._monotonic()
        guilds = [guild for guild in self._client.guilds if not self._is_absent(guild.id, user_id, now)]
        members = await asyncio.gather(*(_member(guild, user_id) for guild in guilds))
        for guild, member in zip(guilds, members, strict=True):
            if member is _NoMember.NOT_THERE:
                self._note_absent(guild.id, user_id, now)
            if not isinstance(member, discord.Member):
                continue
            user = CommandUser(member.guild_permissions, is_owner=member.id in self._client.admission.owners)
            if user.is_moderator or has_chosen_role(member, self._servers.of(member.guild.id).roles):
                channels[member.guild.id] = _shown_to(member)
                readers[member.guild.id] = reader_of(
                    member,
                    self._servers.of(member.guild.id),
                    manages=user.is_manager,
                    is_told=lambda channel: not channel.is_nsfw(),
                )
            if user.is_manager:
                prompts.add(member.guild.id)
        return Access(channels, frozenset(prompts), readers, is_whole=_NoMember.NOT_TOLD not in members)

    def _is_absent(self, guild_id: int, user_id: int, now: float) -> bool:
        """Return whether Discord has said lately that somebody is not on a server."""
        told_at = self._absent.get((guild_id, user_id))
        return told_at is not None and now - told_at < ABSENT_S

    def _note_absent(self, guild_id: int, user_id: int, now: float) -> None:
        self._absent.pop((guild_id, user_id), None)
        self._absent[guild_id, user_id] = now
        while len(self._absent) > MOST_ABSENT:
            del self._absent[next(iter(self._absent))]


class _NoMember(Enum):
    """Why there is no member: they are not on the server, or Discord has not said whether they are, or what they may
    do there.
    """

    NOT_THERE = "not_there"
    NOT_TOLD = "not_told"


async def _member(guild: discord.Guild, user_id: int) -> discord.Member | _NoMember:
    """Return a member as Discord knows them now: nothing tells the bot when a role is taken away."""
    try:
        async with asyncio.timeout(MEMBER_TIMEOUT_S):
            member = await guild.fetch_member(user_id)
    except discord.NotFound:
        return _NoMember.NOT_THERE
    except REQUEST_ERRORS as error:
        log.warning("member_not_checked", guild_id=guild.id, error_class=type(error).__name__)
        return _NoMember.NOT_TOLD
    # discord.py knows the roles of a server, and what they allow, once Discord has shown it.
    return member if guild.roles else _NoMember.NOT_TOLD


def _shown_to(member: discord.Member) -> frozenset[int]:
    """Return the voice channels whose rooms a member sees."""
    rooms = (*member.guild.voice_channels, *member.guild.stage_channels)
    return frozenset(room.id for room in rooms if may_enter(room, member) and not room.is_nsfw())
