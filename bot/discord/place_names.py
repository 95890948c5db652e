"""The names of servers and voice channels, also of those that another process of the bot serves.

The client knows the servers of its own shards. Discord is asked about the others: the same token may read them, through
whichever shard they send their events.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import discord
import structlog

from bot.discord.request_errors import REQUEST_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from bot.discord.client import RoomtoneClient

log = structlog.get_logger()

# A server's id and a channel's.
PlaceId: TypeAlias = tuple[int, int]

# How long a name is believed. Renaming is rare, and every request counts for Discord's limits.
KEPT_S: Final = 600.0
# When to ask again for what Discord did not tell.
RETRY_S: Final = 30.0
MOST_KEPT: Final = 2_000
# To ask Discord for all names of a page. It is shown without those that come later.
ASK_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class _NamedPlace:
    """What Discord said of a server or channel: its server's id and its name; None: it is not there, or not known.

    `until`: when to ask again.
    """

    named: tuple[int, str] | None
    until: float


class PlaceNames:
    """The names of places. `monotonic`: seconds. `within_s`: how long the names of a page may take."""

    def __init__(self, client: RoomtoneClient, *, monotonic: Callable[[], float], within_s: float = ASK_S) -> None:
        self._client = client
        self._monotonic = monotonic
        self._within_s = within_s
        # By server or channel id.
        self._told: dict[int, _NamedPlace] = {}
        # A second page wants what the first asks about.
        self._one_page_at_a_time = asyncio.Lock()

    async def of(self, places: Collection[PlaceId]) -> Mapping[PlaceId, tuple[str, str]]:
        """Return the server's and the channel's name of each place that is there. Never raises.

        A place of which Discord does not tell in time is left out.
        """
        elsewhere = {each for each in places if not self._client.own_shards.serves(each[0])}
        servers, channels = {place[0] for place in elsewhere}, {place[1] for place in elsewhere}
        async with self._one_page_at_a_time:
            now = self._monotonic()
            unknown = [
                each for each in (*servers, *channels) if each not in self._told or self._told[each].until <= now
            ]
            await self._ask(unknown, servers)
        found = {each: self._told_names(each) if each in elsewhere else self._own_names(each) for each in places}
        return {each: names for each, names in found.items() if names is not None}

    def _own_names(self, place: PlaceId) -> tuple[str, str] | None:
        guild = self._client.get_guild(place[0])
        channel = None if guild is None else guild.get_channel(place[1])
        return None if guild is None or channel is None else (guild.name, channel.name)

    def _told_names(self, place: PlaceId) -> tuple[str, str] | None:
        server, channel = (each and each.named for each in map(self._told.get, place))
        return None if not server or not channel or channel[0] != place[0] else (server[1], channel[1])

    async def _ask(self, ids: Collection[int], servers: Collection[int]) -> None:
        """Ask Discord about all of `ids`, of which these are servers."""
        for each in ids:
            # Unless Discord tells something else, what was last known holds for a while.
            former = self._told.pop(each, None)
            self._told[each] = _NamedPlace(None if former is None else former.named, self._monotonic() + RETRY_S)
        while len(self._told) > MOST_KEPT:
            del self._told[next(iter(self._told))]
        with suppress(TimeoutError):
            async with asyncio.timeout(self._within_s):
                await asyncio.gather(*(self._learn(each, is_server=each in servers) for each in ids))

    async def _learn(self, id_: int, *, is_server: bool) -> None:
        try:
            found = await (self._server(id_) if is_server else self._channel(id_))
        except (discord.NotFound, discord.Forbidden):
            found = None
        except REQUEST_ERRORS as error:
            log.warning("place_name_not_told", place_id=id_, error_class=type(error).__name__)
            return
        self._told[id_] = _NamedPlace(found, self._monotonic() + KEPT_S)

    async def _server(self, guild_id: int) -> tuple[int, str]:
        """Return a server's id and name, as Discord tells them. Raises what discord.py raises."""
        guild = await self._client.fetch_guild(guild_id, with_counts=False)
        return guild.id, guild.name

    async def _channel(self, channel_id: int) -> tuple[int, str] | None:
        """Return the id of a channel's server, and its own name; None for one that is of no server. Raises what
        discord.py raises.
        """
        channel = await self._client.fetch_channel(channel_id)
        return (channel.guild.id, channel.name) if isinstance(channel, discord.abc.GuildChannel) else None
