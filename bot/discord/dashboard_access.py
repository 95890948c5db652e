"""What the dashboard has to know of Discord: what somebody may see, by their roles and permissions on the bot's
servers, and the names of servers and voice channels, also of those that another process of the bot serves.

Nobody who logs in with Discord sees the rooms of age-restricted channels, not even managers: Discord tells no bot who
is of age, and asks people itself where they enter such a channel (`bot.discord.voice_channels`). There the commands
tell them what was said. Only the operator's login link shows these rooms.

The client knows the servers of its own shards. Discord is asked about the others: the same token may read them, through
whichever shard they send their events.

Implements `bot.dashboard.access.Directory`.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import discord

from bot.dashboard.access import Access
from bot.discord.access import CommandUser
from bot.discord.admission import NoMember, member_now
from bot.discord.posting import UNSEEN, attempt, unless_gone
from bot.discord.voice_channels import may_enter, role_ids, viewer_of, vocal_channels

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from bot.clock import Clock
    from bot.discord.client import RoomtoneClient
    from bot.server_settings import ServerSettingsBook
    from bot.viewers import Viewer


# A server's id and a channel's.
ChannelKey: TypeAlias = tuple[int, int]

# How long a name is believed. Renaming is rare, and every request counts for Discord's limits.
KEPT_S: Final = 600.0
# When to ask again for what Discord did not tell.
RETRY_S: Final = 30.0
MOST_KEPT: Final = 2_000
# To ask Discord for all names of a page. It is shown without those that come later.
ASK_S: Final = 5.0


class ChannelNames:
    """The names of channels and servers. `within_s`: how long the names of a page may take."""

    def __init__(self, client: RoomtoneClient, clock: Clock, *, within_s: float = ASK_S) -> None:
        self._client = client
        self._clock = clock
        self._within_s = within_s
        # By server or channel id: its server's id and its name, None if it is not there; and when to ask again.
        self._fetched: dict[int, tuple[tuple[int, str] | None, float]] = {}
        # A second page wants what the first asks about.
        self._one_page_at_a_time = asyncio.Lock()

    async def of(self, channels: Collection[ChannelKey]) -> Mapping[ChannelKey, tuple[str, str]]:
        """Return the server's and the channel's name of each channel that is there. Never raises.

        One of which Discord does not tell in time is left out.
        """
        elsewhere = {each for each in channels if not self._client.own_shards.serves(each[0])}
        fetch_guild = partial(self._client.fetch_guild, with_counts=False)
        async with self._one_page_at_a_time:
            await asyncio.gather(
                self._ask({server for server, _ in elsewhere}, fetch_guild),
                self._ask({channel for _, channel in elsewhere}, self._client.fetch_channel),
            )
        found = {each: self._fetched_names(each) if each in elsewhere else self._own_names(each) for each in channels}
        return {each: names for each, names in found.items() if names is not None}

    def _own_names(self, key: ChannelKey) -> tuple[str, str] | None:
        guild = self._client.get_guild(key[0])
        channel = None if guild is None else guild.get_channel(key[1])
        return None if guild is None or channel is None else (guild.name, channel.name)

    def _fetched_names(self, key: ChannelKey) -> tuple[str, str] | None:
        server, channel = (self._fetched[each][0] if each in self._fetched else None for each in key)
        return None if not server or not channel or channel[0] != key[0] else (server[1], channel[1])

    async def _ask(self, ids: Collection[int], fetch: Callable[[int], Awaitable[object]]) -> None:
        """Ask Discord about those that are not known."""
        now = self._clock.monotonic()
        unknown = [each for each in ids if each not in self._fetched or self._fetched[each][1] <= now]
        for each in unknown:
            # Unless Discord tells something else, what was last known holds for a while.
            former, _ = self._fetched.pop(each, (None, now))
            self._fetched[each] = former, now + RETRY_S
        while len(self._fetched) > MOST_KEPT:
            del self._fetched[next(iter(self._fetched))]
        with suppress(TimeoutError):
            async with asyncio.timeout(self._within_s):
                await asyncio.gather(*(self._learn(each, fetch) for each in unknown))

    async def _learn(self, id_: int, fetch: Callable[[int], Awaitable[object]]) -> None:
        found = await attempt(unless_gone(fetch(id_), None, gone=UNSEEN), False, event="name_not_fetched", of=id_)
        if found is False:
            return
        named = None
        if isinstance(found, discord.Guild | discord.abc.GuildChannel):
            named = (found.id if isinstance(found, discord.Guild) else found.guild.id), found.name
        self._fetched[id_] = named, self._clock.monotonic() + KEPT_S


# To ask Discord about one person on one server.
MEMBER_TIMEOUT_S: Final = 5.0
# How long it is believed that somebody is not on a server. A bot may be on hundreds, and all that it asks counts for
# one limit of Discord's. Who joins a server waits this long at most until they see its rooms.
ABSENT_S: Final = 300.0
MOST_ABSENT: Final = 20_000


class DiscordDirectory:
    """The servers of the connected client. `servers`: what each of them has chosen."""

    def __init__(
        self,
        client: RoomtoneClient,
        servers: ServerSettingsBook,
        *,
        clock: Clock,
    ) -> None:
        self._servers = servers
        self._client = client
        self._names = ChannelNames(client, clock)
        self._clock = clock
        # By server and person: when Discord said that they are not there, the oldest first.
        self._absent: dict[tuple[int, int], float] = {}

    @property
    def client_id(self) -> int | None:
        """See `Directory.client_id`."""
        return self._client.application_id

    @property
    def server_names(self) -> Mapping[int, str]:
        """See `Directory.server_names`."""
        return {guild.id: guild.name for guild in self._client.guilds}

    async def names(self, channels: Collection[ChannelKey]) -> Mapping[ChannelKey, tuple[str, str]]:
        """See `Directory.names`."""
        return await self._names.of(channels)

    async def access_of(self, user_id: int) -> Access:
        """See `Directory.access_of`."""
        channels: dict[int, frozenset[int]] = {}
        prompts: set[int] = set()
        viewers: dict[int, Viewer] = {}
        now = self._clock.monotonic()
        # Those of which Discord has not said lately that they are not there.
        believed_since = now - ABSENT_S
        guilds = [
            each for each in self._client.guilds if self._absent.get((each.id, user_id), -math.inf) <= believed_since
        ]
        members = await asyncio.gather(*(member_now(guild, user_id, within_s=MEMBER_TIMEOUT_S) for guild in guilds))
        is_whole = True
        for guild, member in zip(guilds, members, strict=True):
            if member is NoMember.NOT_THERE:
                self._note_absent(guild.id, user_id, now)
                continue
            # discord.py knows the roles of a server, and what they allow, once Discord has shown it.
            if member is NoMember.UNKNOWN or not guild.roles:
                is_whole = False
                continue
            settings = self._servers.of(guild.id)
            user = CommandUser(member.guild_permissions, is_owner=user_id in self._client.admission.owners)
            if user.is_manager or not role_ids(member).isdisjoint(settings.roles):
                channels[guild.id] = _shown_to(member)
                viewers[guild.id] = viewer_of(
                    member, settings, manages=user.is_manager, is_allowed=lambda channel: not channel.is_nsfw()
                )
            if user.is_manager:
                prompts.add(guild.id)
        return Access(channels, frozenset(prompts), viewers, is_whole=is_whole)

    def _note_absent(self, guild_id: int, user_id: int, now: float) -> None:
        self._absent.pop((guild_id, user_id), None)
        self._absent[guild_id, user_id] = now
        while len(self._absent) > MOST_ABSENT:
            del self._absent[next(iter(self._absent))]


def _shown_to(member: discord.Member) -> frozenset[int]:
    """Return the voice channels whose rooms a member sees."""
    return frozenset(room.id for room in vocal_channels(member.guild) if may_enter(room, member) and not room.is_nsfw())
