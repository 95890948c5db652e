"""The names of servers and voice channels, also of those that another process of the bot serves.

The client knows the servers of its own shards. Discord is asked about the others: the same token may read them, through
whichever shard they send their events.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeAlias

import discord
import structlog

from bot.discord.request_errors import REQUEST_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping

    from bot.discord.client import RoomtoneClient

log = structlog.get_logger()

# A server's id and a channel's.
PlaceId: TypeAlias = tuple[int, int]

# How long a name is believed. Renaming is rare, and every request counts for Discord's limits.
KEPT_S: Final = 600.0
MOST_KEPT: Final = 512
# To ask Discord for all names of a page. It is shown without those that come later.
ASK_S: Final = 5.0
ASKED_AT_ONCE: Final = 5


class PlaceNames:
    """The names of places. `monotonic`: seconds. `within_s`: how long the names of a page may take."""

    def __init__(self, client: RoomtoneClient, *, monotonic: Callable[[], float], within_s: float = ASK_S) -> None:
        self._client = client
        self._monotonic = monotonic
        self._within_s = within_s
        # What Discord said, by server or channel id, and when; a channel with its server's id. None: it is not there.
        self._said: dict[int, tuple[float, tuple[int, str] | None]] = {}
        self._asking = asyncio.Semaphore(ASKED_AT_ONCE)

    async def of(self, places: Collection[PlaceId]) -> Mapping[PlaceId, tuple[str, str]]:
        """Return the server's and the channel's name of each place that is there. Never raises.

        A place of which Discord does not tell in time is left out.
        """
        elsewhere = {each for each in places if not self._client.own_shards.serves(each[0])}
        unknown = [each for each in {id_ for place in elsewhere for id_ in place} if not self._is_known(each)]
        if unknown:
            servers = {guild_id for guild_id, _ in elsewhere}
            await self._ask([self._server(each) if each in servers else self._channel(each) for each in unknown])
        found = {each: self._told(each) if each in elsewhere else self._own(each) for each in places}
        return {each: names for each, names in found.items() if names is not None}

    def _own(self, place: PlaceId) -> tuple[str, str] | None:
        guild = self._client.get_guild(place[0])
        channel = None if guild is None else guild.get_channel(place[1])
        return None if guild is None or channel is None else (guild.name, channel.name)

    def _told(self, place: PlaceId) -> tuple[str, str] | None:
        guild_id, channel_id = place
        _, server = self._said.get(guild_id, (0.0, None))
        _, channel = self._said.get(channel_id, (0.0, None))
        return None if server is None or channel is None or channel[0] != guild_id else (server[1], channel[1])

    def _is_known(self, id_: int) -> bool:
        said = self._said.get(id_)
        return said is not None and self._monotonic() < said[0] + KEPT_S

    async def _ask(self, questions: Collection[Coroutine[None, None, None]]) -> None:
        try:
            async with asyncio.timeout(self._within_s):
                await asyncio.gather(*questions)
        except TimeoutError:
            log.warning("place_names_late", asked=len(questions))

    async def _server(self, guild_id: int) -> None:
        await self._keep(guild_id, lambda: self._client.fetch_guild(guild_id, with_counts=False))

    async def _channel(self, channel_id: int) -> None:
        await self._keep(channel_id, lambda: self._client.fetch_channel(channel_id))

    async def _keep(self, id_: int, ask: Callable[[], Coroutine[None, None, object]]) -> None:
        """Ask Discord, and keep what it says. What it cannot tell now is asked again the next time."""
        async with self._asking:
            try:
                found = await ask()
            except (discord.NotFound, discord.Forbidden):
                found = None
            except REQUEST_ERRORS as error:
                log.warning("place_name_not_told", place_id=id_, error_class=type(error).__name__)
                return
        self._said.pop(id_, None)
        self._said[id_] = self._monotonic(), _named(found)
        while len(self._said) > MOST_KEPT:
            del self._said[next(iter(self._said))]


def _named(found: object) -> tuple[int, str] | None:
    """Return the id of the server of what Discord told of, and its name."""
    if isinstance(found, discord.Guild):
        return found.id, found.name
    if isinstance(found, discord.abc.GuildChannel):
        return found.guild.id, found.name
    return None
