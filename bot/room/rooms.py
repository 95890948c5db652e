"""The rooms of all guilds: opens them, ends all in order, and passes on what happens in the voice channels.

A guild has at most one room, because Discord allows a bot one voice connection for each guild. Each is a `guild_room`
with a task of its own, so that a crash affects no other room.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from bot.background_task import logged_task
from bot.channel.port import HERE_ALREADY, IN_NO_CHANNEL, MembershipChange, RoomChannel
from bot.errors import SetupError
from bot.health import Actor, FaultKind, HealthFault, without_repeats
from bot.room.auto_joiner import AutoJoiner
from bot.room.guild_room import GuildRoom
from bot.room.leaving import LEFT, NOT_JOINED, PROCESS_ENDS
from bot.room.lifecycle import DATABASE_PAUSE_S
from bot.room.room_status import status_before_opening
from bot.server_settings import ListenRequest, ServerSettingsBook, no_server_settings
from bot.texts.text import Text, joined, verbatim
from compaction.errors import StoreError

if TYPE_CHECKING:
    from types import TracebackType

    from bot.clock import Clock
    from bot.health import Health
    from bot.participation.spending import Spending
    from bot.room.guild_room import EndSession, MakeRoom
    from bot.room.room import Room

# Includes the voice connection's own timeouts and retries.
JOIN_TIMEOUT_S = 60.0

NOT_CONNECTED = Text("I waited {seconds} seconds, but I could not connect to the voice channel. Use /join again.")
DRAINING = HealthFault(
    FaultKind.DRAINING,
    Text("I am stopping. I save what was said last, and leave my voice channels."),
    acts=Actor.NOBODY,
)
EVERYTHING_WORKS = Text("Everything works.")
FULL = Text("I am already in as many voice channels as I can be. Try again when I have left one.")


class Rooms:
    """Runs rooms. `make_room` makes a room for a channel; it is called for each start. `servers`: when to come unasked.
    `end_session`: see `GuildRoom`. `health`: knows what is wrong in the process, whatever the rooms say; None: nothing.
    `max_rooms`: how many are open at most; None: no limit. `spending`: of all servers.

    *Ownership*: an async context manager that owns every guild's room. On exit it asks all rooms to end in order, and
    cuts off those that take too long. It owns the tasks that end sessions which the database did not end at once.
    """

    def __init__(
        self,
        make_room: MakeRoom,
        *,
        clock: Clock,
        servers: ServerSettingsBook | None = None,
        end_session: EndSession | None = None,
        health: Health | None = None,
        max_rooms: int | None = None,
        spending: Spending | None = None,
    ) -> None:
        self._make_room = make_room
        self._clock = clock
        self._end_session = end_session
        self._health = health
        self._max_rooms = max_rooms
        self._spending = spending
        # Set when a room is over: somebody who waits for a free one may have it.
        self._room_over = asyncio.Event()
        self._rooms: dict[int, GuildRoom] = {}
        # Where the bot comes to, in each guild in which somebody waits for the last room to end: the last wish counts.
        self._next: dict[int, RoomChannel] = {}
        self._ending_sessions: dict[int, asyncio.Task[None]] = {}
        self._closing = False
        # Is told who comes into a voice channel, and who leaves one.
        self.auto_joiner = AutoJoiner(self, servers or no_server_settings())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._close()
        await asyncio.gather(*(room.end(PROCESS_ENDS) for room in list(self._rooms.values())))
        for ending in self._ending_sessions.values():
            ending.cancel()

    async def _close(self) -> None:
        """Open no more rooms."""
        self._closing = True
        await self.auto_joiner.close()

    async def hand_over(self) -> None:
        """End each room at a pause in speech, and open no others. The process that serves these servers next goes on
        with the sessions.
        """
        await self._close()
        await asyncio.gather(*(room.hand_over() for room in list(self._rooms.values())))

    async def abandon(self) -> None:
        """Cancel every room without saving, as if the process were killed. Sessions stay open."""
        await self._close()
        rooms = list(self._rooms.values())
        for room in rooms:
            room.cancel()
        await asyncio.gather(*(asyncio.wait({room.task}) for room in rooms))

    # -- what people ask --------------------------------------------------------------------------------------------

    async def join(self, channel: RoomChannel, *, listen: ListenRequest | None = None) -> None:
        """Open a room in `channel`; return when the bot has joined the channel and receives its sound.

        A room that is ending, also by itself, is waited for; a later `join` or `leave` replaces this one meanwhile.
        `listen`: what is said there is written down. Raises the room's error, or `SetupError` if it takes too long, was
        replaced, or the guild has a room already. *Cancellation*: the room goes on.
        """
        guild_id = channel.guild_id
        ending = self._rooms.get(guild_id)
        if ending is None or ending.is_ending:
            await self._wait_for_turn(channel, ending)
        if self._closing:
            raise SetupError(Text("I am shutting down. Try again in a moment."))
        if guild_id in self._rooms:
            here = self._rooms[guild_id].channel.name
            raise SetupError(HERE_ALREADY.fill(channel=here))
        if (full := self.full(guild_id)) is not None:
            raise SetupError(full)
        opening = self._begun(channel, listen)
        try:
            async with asyncio.timeout(JOIN_TIMEOUT_S):
                await opening.wait_opened()
        except TimeoutError:
            await opening.end(NOT_JOINED)
            raise SetupError(NOT_CONNECTED.fill(seconds=JOIN_TIMEOUT_S)) from None

    def _begun(self, channel: RoomChannel, listen: ListenRequest | None) -> GuildRoom:
        """Begin to open a room in `channel`, and return it."""
        guild_id = channel.guild_id
        opening = self._rooms[guild_id] = GuildRoom(
            channel,
            make_room=self._make_room,
            listen=listen,
            clock=self._clock,
            auto_joiner=self.auto_joiner,
            end_session=self._end_session,
        )
        opening.task.add_done_callback(lambda _: self._on_over(opening))
        return opening

    def _on_over(self, room: GuildRoom) -> None:
        """No further room follows on that server."""
        guild_id = room.guild_id
        del self._rooms[guild_id]
        self._room_over.set()
        if room.session_left_open and self._end_session is not None and guild_id not in self._ending_sessions:
            self._ending_sessions[guild_id] = logged_task(
                self._end_left_open(room.channel, self._end_session), name=f"session-end-{guild_id}"
            )

    async def _end_left_open(self, channel: RoomChannel, end_session: EndSession) -> None:
        """End what a room in `channel` has left open, once the database takes it. A room that opens there does so."""
        try:
            is_open = True
            while is_open and channel.guild_id not in self._rooms:
                await self._clock.sleep(DATABASE_PAUSE_S)
                with suppress(StoreError):
                    await end_session(channel)
                    is_open = False
        finally:
            del self._ending_sessions[channel.guild_id]

    def full(self, guild_id: int) -> Text | None:
        """Return that the process takes no room of this guild now, beside those of others; None: it does."""
        others = len(self._rooms.keys() - {guild_id})
        return FULL if self._max_rooms is not None and others >= self._max_rooms else None

    async def wait_for_place(self, guild_id: int) -> None:
        """Wait until the process takes a room of this guild."""
        while self.full(guild_id) is not None:
            self._room_over.clear()
            await self._room_over.wait()

    async def _wait_for_turn(self, channel: RoomChannel, ending: GuildRoom | None) -> None:
        """Wait until the guild's last room has ended. Raises `SetupError` if somebody wants something else by then."""
        self._next[channel.guild_id] = channel
        try:
            if ending is not None:
                await ending.let_end()
        finally:
            replaced = self._next.get(channel.guild_id) is not channel
            if not replaced:
                del self._next[channel.guild_id]
        if replaced:
            raise SetupError(Text("Somebody has given me another command in the meantime."))

    async def leave(self, guild_id: int) -> bool:
        """End the guild's room in order. Return whether there was one, or somebody had called the bot."""
        waited = self._next.pop(guild_id, None) is not None
        room = self._rooms.get(guild_id)
        if room is None:
            return waited
        await room.end(LEFT)
        return True

    def status(self, guild_id: int) -> Text:
        """Return first what is wrong, or that nothing is, then what the room says, if there is one."""
        room, coming_to = self._room_in(guild_id), self._next.get(guild_id)
        if room is not None:
            told = room.current.status()
        else:
            told = IN_NO_CHANNEL if coming_to is None else status_before_opening(coming_to)
        faults = [] if self._health is None else self._health.process_faults()
        faults = without_repeats([*faults, *([] if room is None else room.faults())])
        now = self._clock.monotonic()
        return joined((*([fault.status(now) for fault in faults] or [EVERYTHING_WORKS]), told), "\n")

    async def all_servers(self) -> Text:
        """Return what only the operator is told: what all servers have used."""
        return verbatim("") if self._spending is None else await self._spending.together()

    def open(self, guild_id: int) -> Room | None:
        """Return the guild's room, which may still be opening; None: there is none, or it is ending."""
        room = self._room_in(guild_id)
        return None if room is None else room.current

    # -- where the bot is -------------------------------------------------------------------------------------------

    def room_channel_of(self, guild_id: int) -> RoomChannel | None:
        """Return where the bot is or is coming to. A room that is ending is none any more."""
        room = self._room_in(guild_id)
        return self._next.get(guild_id) if room is None else room.channel

    def _room_in(self, guild_id: int) -> GuildRoom | None:
        """Return the guild's room; None if it is ending. Who may ask about a room depends on `room_channel_of`."""
        room = self._rooms.get(guild_id)
        return None if room is None or room.is_ending else room

    def current_channel(self, guild_id: int) -> RoomChannel | None:
        """Return where the guild's room is or is moved to, also one that is ending; None: there is none any more, or it
        ends because everybody has left.
        """
        room = self._rooms.get(guild_id)
        return None if room is None else room.bound_for

    def faults(self) -> list[HealthFault]:
        """Return why the rooms cannot do their work: each room's faults, and those that are being started again."""
        if self._closing:
            return [DRAINING]
        return [fault for room in self._rooms.values() for fault in room.faults()]

    # -- what happens in the voice channels -------------------------------------------------------------------------

    def on_membership(self, guild_id: int, channel_id: int, change: MembershipChange) -> None:
        room = self._rooms.get(guild_id)
        if room is not None and room.channel.channel_id == channel_id:
            room.current.on_membership(change)

    def on_bot_moved(self, channel: RoomChannel) -> None:
        """Handle a move of the bot to `channel` by somebody else: end the room in order and open the next one there.

        A room that goes on where it was, although the bot was moved while nobody looked, has moved the bot itself.
        """
        if (room := self._rooms.get(channel.guild_id)) is not None:
            room.move_to(channel)

    def on_bot_taken_out(self, guild_id: int) -> None:
        """Handle that somebody has taken the bot out of its voice channel: it stays away, whatever its room does."""
        if (room := self._rooms.get(guild_id)) is not None:
            room.on_taken_out()
