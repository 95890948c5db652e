"""Brings the bot into a voice channel without being called, and along to another.

The server's managers make the rules (`/settings auto-join`, `join-with`, `follow`; see `should_go`). Only an arrival
brings it: it never comes by itself at the start, or because somebody changed a setting.
Why the bot could not come is written into the channel, unless that was written there last. A channel that the bot was
sent away from is left alone until it has been empty. Who moves on while the bot is still coming is looked at again when
it is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.background_task import cancel_all, logged_task
from bot.errors import crash_sentence
from bot.room.leaving import EXPELLED, LEFT, LONGEST, NOT_ANNOUNCED
from bot.texts.text import Text

if TYPE_CHECKING:
    import asyncio

    from bot.channel.port import Person, RoomChannel
    from bot.room.rooms import Rooms
    from bot.server_settings import ServerSettings, ServerSettingsBook

log = structlog.get_logger()

# People of one server who move while the bot is coming somewhere; more than that gather in no voice channel.
MOST_MISSED = 100
# Whoever ended the session so does not want the bot back at once: it waits until the channel has been empty.
DECLINING_ENDS = frozenset({LEFT, EXPELLED, LONGEST, NOT_ANNOUNCED})


@dataclass(frozen=True, slots=True)
class Arrival:
    """A person has come into a voice channel. `people`: how many are there now, without bots.

    `came_from`: the voice channel that they left for it, if any. `declined`: the bot was sent away from there, and the
    channel has not been empty since.
    """

    person_id: int
    channel_id: int
    people: int
    came_from: int | None = None
    declined: bool = False


@dataclass(frozen=True, slots=True)
class BotStay:
    """The channel that the bot is in, and how many people are there with it."""

    channel_id: int
    people: int


def should_go(rules: ServerSettings, arrival: Arrival, stay: BotStay | None) -> bool:
    """Return whether the bot goes to the channel of an arrival. `stay`: where it is; None: in no voice channel."""
    if stay is None:
        return not arrival.declined and _should_join(rules, arrival)
    if arrival.channel_id == stay.channel_id or arrival.came_from != stay.channel_id:
        return False
    match rules.follow:
        case "nobody":
            return False
        case "people":
            return arrival.person_id in rules.auto_join_with
        case "everybody":
            return stay.people == 0


def _should_join(rules: ServerSettings, arrival: Arrival) -> bool:
    enough = arrival.channel_id in rules.auto_join_channels and arrival.people >= rules.auto_join_people
    return enough or arrival.person_id in rules.auto_join_with


class AutoJoiner:
    """Opens and moves `rooms` when people come into a channel, by the rules of each server's managers (`servers`).

    *Ownership*: owns one task for each visit that has begun, at most one for each guild, until `close`.
    """

    def __init__(self, rooms: Rooms, servers: ServerSettingsBook) -> None:
        self._rooms = rooms
        self._servers = servers
        self._visits: dict[int, asyncio.Task[None]] = {}
        # Of each guild with a visit, by person: the last arrival meanwhile, and the channels that they left for it.
        self._missed: dict[int, dict[int, tuple[RoomChannel, Person, frozenset[int]]]] = {}
        # The channels that the bot was sent away from, until they are empty.
        self._declined: set[int] = set()
        # Why it could not come was written there last, by channel.
        self._reported: dict[int, str] = {}
        self._is_closed = False

    async def close(self) -> None:
        """Begin no more visits, and cancel those that have begun."""
        self._is_closed = True
        await cancel_all(self._visits.values())

    def on_arrival(self, channel: RoomChannel, person: Person, *, came_from: int | None) -> None:
        """Handle that somebody has come into a voice channel: the bot may come by itself, or go along."""
        if person.is_bot or self._is_closed:
            return
        self._take(channel, person, frozenset() if came_from is None else frozenset({came_from}))

    def _take(self, channel: RoomChannel, person: Person, left: frozenset[int]) -> None:
        """Look at an arrival, now or after the visit that is under way. `left`: the channels that the person has left
        for this one.
        """
        if channel.guild_id not in self._visits:
            self._consider(channel, person, left)
            return
        missed = self._missed.setdefault(channel.guild_id, {})
        before = missed.pop(person.id, None)
        if before is not None and left:
            # The bot may be on its way to any of the channels that somebody was moved through.
            left |= before[2]
        if len(missed) < MOST_MISSED:
            missed[person.id] = channel, person, left

    def _consider(self, channel: RoomChannel, person: Person, left: frozenset[int]) -> None:
        """Begin a visit if the rules want it."""
        guild_id = channel.guild_id
        bot_channel = self._rooms.current_channel(guild_id)
        stay = None if bot_channel is None else BotStay(bot_channel.channel_id, _people_in(bot_channel))
        came_from = stay.channel_id if stay is not None and stay.channel_id in left else None
        is_declined = channel.channel_id in self._declined
        arrival = Arrival(person.id, channel.channel_id, _people_in(channel), came_from, is_declined)
        if not should_go(self._servers.of(guild_id), arrival, stay):
            return
        log.info("visit_begun", guild_id=guild_id, channel_id=channel.channel_id, follows=stay is not None)
        visit = self._visits[guild_id] = logged_task(
            self._visit(channel, follows=stay is not None), name=f"visit-{guild_id}"
        )
        visit.add_done_callback(lambda _: self._on_visit_over(channel))

    def _on_visit_over(self, visited: RoomChannel) -> None:
        """Look again at who has moved meanwhile and is still where they moved to."""
        self._visits.pop(visited.guild_id, None)
        for channel, person, left in self._missed.pop(visited.guild_id, {}).values():
            # A visit that failed is not repeated for those who came while it lasted.
            is_elsewhere = channel.channel_id != visited.channel_id and not self._is_closed
            if is_elsewhere and any(each.id == person.id for each in channel.members()):
                self._take(channel, person, left)

    def on_departure(self, channel: RoomChannel) -> None:
        """Handle that somebody has left a voice channel: once it is empty, the bot may come there again."""
        if channel.channel_id in self._declined and not _people_in(channel):
            self._declined.discard(channel.channel_id)

    def on_room_end(self, channel: RoomChannel, reason: str) -> None:
        """Handle that the bot's room has ended: whoever sent the bot away does not want it back at once."""
        if reason in DECLINING_ENDS:
            self._missed.pop(channel.guild_id, None)
            # Nobody leaves a channel that has become empty while the room ended, so nothing would end the decline.
            if _people_in(channel):
                self._declined.add(channel.channel_id)

    async def _visit(self, channel: RoomChannel, *, follows: bool) -> None:
        """Come into `channel`, from another channel (`follows`) or from none, once the process takes a further room. If
        that fails, write it there, once.
        """
        refused = channel.refusal()
        if refused is None:
            if follows:
                self._rooms.on_bot_moved(channel)
                return
            await self._rooms.wait_for_place(channel.guild_id)
            if self._rooms.current_channel(channel.guild_id) is not None or not _people_in(channel):
                # Somebody has called it meanwhile, perhaps elsewhere, or everybody has left.
                return
            try:
                await self._rooms.join(channel)
            except Exception as error:  # noqa: BLE001 - a defect is logged by the room, and nobody else would say it
                refused = crash_sentence(error)
        if refused is not None and self._reported.get(channel.channel_id) != str(refused):
            self._reported[channel.channel_id] = str(refused)
            log.warning("visit_failed", guild_id=channel.guild_id, channel_id=channel.channel_id, problem=refused)
            await channel.write(Text("I could not join by myself. {why}", why=refused))


def _people_in(channel: RoomChannel) -> int:
    return sum(not person.is_bot for person in channel.members())
