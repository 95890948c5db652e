"""The names of servers and voice channels, also of those that another process of the bot serves.

The client knows the servers of its own shards. Discord is asked about the others: the same token may read them, through
whichever shard they send their events.
"""

from __future__ import annotations

import asyncio
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
ASKED_AT_ONCE: Final = 5


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
        # By server or channel id; those that were wanted last are at the end.
        self._told: dict[int, _NamedPlace] = {}
        self._asking = asyncio.Semaphore(ASKED_AT_ONCE)
        # What a page asks about now; each is set once that has ended.
        self._asked: dict[int, asyncio.Event] = {}

    async def of(self, places: Collection[PlaceId]) -> Mapping[PlaceId, tuple[str, str]]:
        """Return the server's and the channel's name of each place that is there. Never raises.

        A place of which Discord does not tell in time is left out.
        """
        elsewhere = {each for each in places if not self._client.own_shards.serves(each[0])}
        servers, channels = {place[0] for place in elsewhere}, {place[1] for place in elsewhere}
        unknown = [each for each in (*servers, *channels) if not self._is_told(each)]
        if unknown:
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

    def _is_told(self, id_: int) -> bool:
        """Return whether Discord need not be asked again. What is wanted goes to the end of what is kept."""
        told = self._told.pop(id_, None)
        if told is None:
            return False
        self._told[id_] = told
        return self._monotonic() < told.until

    async def _ask(self, ids: Collection[int], servers: Collection[int]) -> None:
        """Ask Discord about all of `ids`, of which these are servers."""
        asked: set[int] = set()
        try:
            async with asyncio.timeout(self._within_s):
                await asyncio.gather(*(self._learn(each, asked, is_server=each in servers) for each in ids))
        except TimeoutError:
            late = [each for each in asked if not self._is_told(each)]
            log.warning("place_names_late", count=len(late))
            for each in late:
                self._not_told(each)
        while len(self._told) > MOST_KEPT:
            del self._told[next(iter(self._told))]

    async def _learn(self, id_: int, asked: set[int], *, is_server: bool) -> None:
        """Ask Discord about one id, and add it to `asked`; or wait for the page that asks about it already."""
        if (theirs := self._asked.get(id_)) is not None:
            await theirs.wait()
            return
        ended = self._asked[id_] = asyncio.Event()
        try:
            async with self._asking:
                asked.add(id_)
                await self._fetch(id_, is_server=is_server)
        finally:
            del self._asked[id_]
            ended.set()

    async def _fetch(self, id_: int, *, is_server: bool) -> None:
        try:
            found = await (self._server(id_) if is_server else self._channel(id_))
        except (discord.NotFound, discord.Forbidden):
            found = None
        except REQUEST_ERRORS as error:
            log.warning("place_name_not_told", place_id=id_, error_class=type(error).__name__)
            self._not_told(id_)
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

    def _not_told(self, id_: int) -> None:
        """Go on with what was last known for a while."""
        former = self._told.pop(id_, None)
        self._told[id_] = _NamedPlace(None if former is None else former.named, self._monotonic() + RETRY_S)
