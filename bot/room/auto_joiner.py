"""Brings the bot into a voice channel without being called, and along to another, as `bot.room.auto_join` decides.

Why the bot could not come is written into the channel, each reason once. A channel that the bot was sent away from is
left alone until it has been empty.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.errors import KNOWN_ERRORS
from bot.room.auto_join import DECLINING_ENDS, Arrival, BotStay, should_go
from bot.texts.text import Text, sentence_of

if TYPE_CHECKING:
    from bot.channel.port import Person, Place
    from bot.server_settings import ServerSettingsBook

log = structlog.get_logger()


class JoinableRooms(Protocol):
    """The rooms of all guilds. `bot.room.supervisor.RoomSupervisor` implements it."""

    def room_place(self, guild_id: int) -> Place | None:
        """Return the place of the guild's room, also of one that is ending; None: it has no room."""

    async def join(self, place: Place) -> None:
        """Open a room in `place`. Raises one of `KNOWN_ERRORS`."""

    def on_bot_moved(self, place: Place) -> None:
        """End the guild's room in order and open the next one in `place`."""


class AutoJoiner:
    """Opens and moves `rooms` when people come into a channel, by the rules of each server's managers (`servers`).

    *Ownership*: owns one task for each visit that has begun, at most one for each guild, until `close`.
    """

    def __init__(self, rooms: JoinableRooms, servers: ServerSettingsBook) -> None:
        self._rooms = rooms
        self._servers = servers
        self._visits: dict[int, asyncio.Task[None]] = {}
        # The channels that the bot was sent away from, until they are empty; and what was said about visits there.
        self._declined: set[int] = set()
        self._told: set[tuple[int, str]] = set()
        self._is_closed = False

    async def close(self) -> None:
        """Begin no more visits, and cancel those that have begun."""
        self._is_closed = True
        visits = list(self._visits.values())
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)

    def on_arrival(self, place: Place, person: Person, *, came_from: int | None) -> None:
        """Handle that somebody has come into a voice channel: the bot may come by itself, or go along."""
        guild_id = place.guild_id
        if person.is_bot or self._is_closed or guild_id in self._visits:
            return
        arrival = Arrival(
            person.id,
            place.channel_id,
            people=_people_in(place),
            came_from=came_from,
            declined=place.channel_id in self._declined,
        )
        bot_place = self._rooms.room_place(guild_id)
        stay = None if bot_place is None else BotStay(bot_place.channel_id, _people_in(bot_place))
        if not should_go(self._servers.of(guild_id), arrival, stay):
            return
        log.info("visit_begun", guild_id=guild_id, channel_id=place.channel_id, follows=stay is not None)
        visit = self._visits[guild_id] = asyncio.create_task(self._visit(place), name=f"visit-{guild_id}")
        visit.add_done_callback(lambda _: self._visits.pop(guild_id, None))

    def on_departure(self, place: Place) -> None:
        """Handle that somebody has left a voice channel: once it is empty, the bot may come there again."""
        if place.channel_id in self._declined and not _people_in(place):
            self._declined.discard(place.channel_id)

    def on_room_end(self, place: Place, reason: str) -> None:
        """Handle that the bot's room has ended: whoever sent the bot away does not want it back at once."""
        # Nobody leaves a channel that has become empty while the room ended, so nothing would end the decline.
        if reason in DECLINING_ENDS and _people_in(place):
            self._declined.add(place.channel_id)

    async def _visit(self, place: Place) -> None:
        """Come into `place`, from another channel or from none. If that fails, write it there, once."""
        refused = place.refusal()
        if refused is None:
            if self._rooms.room_place(place.guild_id) is not None:
                self._rooms.on_bot_moved(place)
                return
            try:
                await self._rooms.join(place)
            except KNOWN_ERRORS as error:
                refused = sentence_of(error)
        if refused is not None and (place.channel_id, refused) not in self._told:
            self._told.add((place.channel_id, str(refused)))
            log.warning("visit_failed", guild_id=place.guild_id, channel_id=place.channel_id, problem=refused)
            await place.write(Text("I could not come by myself. {why}", why=refused))


def _people_in(place: Place) -> int:
    return sum(not person.is_bot for person in place.members())
