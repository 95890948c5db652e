"""Runs the rooms of all guilds, each in a task of its own: restarts a room that crashes, and ends all in order.

A guild has at most one room, because Discord allows a bot one voice connection for each guild. A crash affects no other
room. The supervisor writes about it into the text channel, and the room starts again and resumes its session. One that
another process has taken over stays ended.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

import structlog

from bot.errors import BotError, SetupError, first_cause
from bot.health import FaultKind, HealthFault
from bot.room.announcer import NotAnnouncedError
from bot.room.auto_join import DECLINING_ENDS, Arrival, BotStay, should_go
from bot.room.endings import MOVED, PROCESS_ENDS, ProcessLostError
from bot.room.restarts import DATABASE_PAUSE_S, RoomRestarts, waits_for_database
from bot.server_settings import no_server_settings
from bot.texts.text import Text, sentence_of
from compaction.errors import CompactionError, StaleOwnerError
from voice.errors import RemovedFromChannelError, VoiceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from bot.channel.port import ListenRequest, MembershipChange, Person, Place, UnfinishedWords
    from bot.clock import Clock
    from bot.models.voices import EmbeddedVoice
    from bot.server_settings import ServerSettingsBook

log = structlog.get_logger()

# Includes the voice connection's own timeouts and retries.
JOIN_TIMEOUT_S = 60.0
# Time for a sentence to end and the last words to become turns (27 s at most, `bot.room.conversation`), and for what is
# quick unless Discord or the database stalls. If that is cut off, the next start goes on with the session. With the
# other parts' ends it is less than `bot.cli.run` allows.
CLOSE_TIMEOUT_S = 35.0
# How long a room that was cut off may take to close its connection.
CUT_OFF_S = 5.0
# Asking Discord to take the bot out of a channel is one message.
LEFT_BEHIND_S = 5.0

DRAINING = HealthFault(FaultKind.DRAINING, "I am ending: what was said last is being stored, and I leave my rooms.")
RESTARTING = HealthFault(FaultKind.ROOM_DEAF, "A room has broken down and is being opened again; the log says why.")
KNOWN_ERRORS = (BotError, VoiceError, CompactionError)


class SupervisedRoom(Protocol):
    """The supervisor's interface to a room. `bot.room.room.Room` implements it."""

    @property
    def opened(self) -> asyncio.Event:
        """Set when the bot has joined the channel and receives its sound."""

    async def run(self) -> str:
        """Run until closed; return the reason (one word). Any error is a crash."""

    def close(self, reason: str) -> None:
        """Ask the room to end in order. `run` then returns `reason`."""

    def on_membership(self, change: MembershipChange) -> None:
        """Record that somebody came or went."""

    def status(self) -> Text:
        """Return the room's state in plain sentences."""

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        """Return what people in the room are saying, as far as it is recognised; the latest first."""

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        """Say the voice's sample; return why it was not said, or None. Raises `SynthesisError`."""

    def faults(self) -> list[HealthFault]:
        """Return why the bot hears nobody in the room, or nobody there hears the bot."""


@dataclass(slots=True)
class _Entry:
    place: Place
    room: SupervisedRoom
    task: asyncio.Task[None] | None = None
    # True between a crash and the restart: there is no room to end in order.
    restarting: bool = False
    # The room could not begin because the database is away, and tries again.
    waits: bool = False
    # The channel that somebody moved the bot to; the next room opens there.
    next_place: Place | None = None
    ending: bool = False
    # The bot only writes down there, also after a crash or a move.
    listen: ListenRequest | None = None
    # Its first room ran already, so nobody has asked for it who could ask again.
    ran_on: bool = False
    # Write into the channel that the room was lost: each time one, and Discord may be slow.
    telling: set[asyncio.Task[None]] = field(default_factory=set)


class RoomSupervisor:
    """Runs rooms. `make_room` makes a room for a place; it is called for each start. `servers`: when to come unasked.
    `left_behind`: takes the bot out of a server's channel if a room that will not be started again could not.

    *Ownership*: an async context manager that owns every room's task. On exit it asks all rooms to end in order, and
    cancels those that take longer than `CLOSE_TIMEOUT_S`.
    """

    def __init__(
        self,
        make_room: Callable[[Place, ListenRequest | None], SupervisedRoom],
        *,
        clock: Clock,
        servers: ServerSettingsBook | None = None,
        left_behind: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self._make_room = make_room
        self._clock = clock
        self._entries: dict[int, _Entry] = {}
        # Where the bot goes once the room of a guild has ended: the last wish of anybody there.
        self._next: dict[int, Place] = {}
        self._closing = False
        self._left_behind = left_behind
        self._servers = servers or no_server_settings()
        # The visits that the bot makes by itself: at most one for each guild.
        self._visits: dict[int, asyncio.Task[None]] = {}
        # The channels that the bot was sent away from, until they are empty; and what was said about visits there.
        self._declined: set[int] = set()
        self._told: set[tuple[int, str]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._closing = True
        await self._cancel_visits()
        await asyncio.gather(*(self._end(guild_id, PROCESS_ENDS) for guild_id in list(self._entries)))

    async def join(
        self, place: Place, *, listen: ListenRequest | None = None, room: SupervisedRoom | None = None
    ) -> None:
        """Open a room in `place`; return when the bot has joined the channel and receives its sound.

        A room that is ending is waited for; a later `join` or `leave` replaces this one meanwhile. `listen`: the bot
        only writes down there. `room`: the first one to run, which goes on; None: a new one. Raises the room's error,
        or `SetupError` if it takes too long, was replaced, or the guild has a room already. One that cannot go on
        because the database is away waits for it all the same.
        """
        entry = self._entries.get(place.guild_id)
        if entry is not None and entry.ending and entry.task is not None:
            self._next[place.guild_id] = place
            try:
                await asyncio.wait({entry.task})
            finally:
                replaced = self._next.get(place.guild_id) is not place
                if not replaced:
                    del self._next[place.guild_id]
            if replaced:
                raise SetupError(Text("Somebody has told me something else meanwhile."))
        if self._closing:
            raise SetupError(Text("I am shutting down. Try again in a moment."))
        if place.guild_id in self._entries:
            here = self._entries[place.guild_id].place.name
            raise SetupError(Text("I am in {channel} already. Use /leave first.", channel=here))
        first = room or self._make_room(place, listen)
        entry = self._entries[place.guild_id] = _Entry(place, first, listen=listen, ran_on=room is not None)
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry.task = asyncio.create_task(self._run_room(entry, started), name=f"room-{place.guild_id}")
        try:
            async with asyncio.timeout(JOIN_TIMEOUT_S):
                await asyncio.shield(started)
        except TimeoutError:
            await self._end(place.guild_id, "not_joined")
            raise SetupError(
                Text(
                    "The voice connection did not come about within {seconds} s. Try /join again.",
                    seconds=JOIN_TIMEOUT_S,
                )
            ) from None

    async def abandon(self) -> None:
        """Cancel every room without saving, as if the process were killed. Sessions stay open."""
        self._closing = True
        await self._cancel_visits()
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def leave(self, guild_id: int) -> bool:
        waited = self._next.pop(guild_id, None) is not None
        if guild_id not in self._entries:
            return waited
        await self._end(guild_id, "left")
        return True

    def place_of(self, guild_id: int) -> Place | None:
        """Return where the bot is or is coming to. A room that is ending is none any more."""
        entry = self._entries.get(guild_id)
        return self._next.get(guild_id) if entry is None or entry.ending else entry.place

    def status(self, guild_id: int) -> Text:
        entry = self._entries.get(guild_id)
        if entry is None:
            return Text("I am not in a voice channel here. Use /join from the one you are in.")
        return entry.room.status()

    def unfinished(self, guild_id: int) -> tuple[UnfinishedWords, ...]:
        entry = self._entries.get(guild_id)
        return () if entry is None else entry.room.unfinished()

    async def play_sample(self, guild_id: int, voice: EmbeddedVoice) -> Text | None:
        entry = self._entries.get(guild_id)
        if entry is None:
            return Text("I am not in a voice channel here. Use /join from the one you are in.")
        return await entry.room.play_sample(voice)

    @property
    def room_count(self) -> int:
        return len(self._entries)

    def faults(self) -> list[HealthFault]:
        """Return why the rooms cannot do their work: each room's faults, and those that are being started again."""
        if self._closing:
            return [DRAINING]
        found = [fault for entry in self._entries.values() if not entry.restarting for fault in entry.room.faults()]
        # One that waits for the database is tried again every few seconds, which nobody shall take for a recovery.
        return found + [
            RESTARTING
            for entry in self._entries.values()
            if entry.restarting or (entry.waits and not entry.room.opened.is_set())
        ]

    def on_membership(self, guild_id: int, channel_id: int, change: MembershipChange) -> None:
        entry = self._entries.get(guild_id)
        if entry is not None and entry.place.channel_id == channel_id:
            entry.room.on_membership(change)

    def on_arrival(self, place: Place, person: Person, *, came_from: int | None) -> None:
        """Handle that somebody has come into a voice channel: the bot may come by itself, or go along."""
        guild_id = place.guild_id
        if person.is_bot or self._closing or guild_id in self._visits:
            return
        entry = self._entries.get(guild_id)
        arrival = Arrival(
            person.id,
            place.channel_id,
            people=_people_in(place),
            came_from=came_from,
            declined=place.channel_id in self._declined,
        )
        stay = None if entry is None else BotStay(entry.place.channel_id, _people_in(entry.place))
        if not should_go(self._servers.of(guild_id), arrival, stay):
            return
        log.info("visit_begun", guild_id=guild_id, channel_id=place.channel_id, follows=entry is not None)
        visit = self._visits[guild_id] = asyncio.create_task(self._visit(place), name=f"visit-{guild_id}")
        visit.add_done_callback(lambda _: self._visits.pop(guild_id, None))

    def on_departure(self, place: Place) -> None:
        """Handle that somebody has left a voice channel: once it is empty, the bot may come there again."""
        if place.channel_id in self._declined and not _people_in(place):
            self._declined.discard(place.channel_id)

    async def _visit(self, place: Place) -> None:
        """Come into `place`, from another channel or from none. If that fails, write it there, once."""
        refused = place.refusal()
        if refused is None:
            if place.guild_id in self._entries:
                self.on_bot_moved(place)
                return
            try:
                await self.join(place)
            except KNOWN_ERRORS as error:
                refused = sentence_of(error)
        if refused is not None and (place.channel_id, refused) not in self._told:
            self._told.add((place.channel_id, str(refused)))
            log.warning("visit_failed", guild_id=place.guild_id, channel_id=place.channel_id, problem=refused)
            await place.write(Text("I could not come by myself. {why}", why=refused))

    async def _cancel_visits(self) -> None:
        visits = list(self._visits.values())
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)

    def on_bot_moved(self, place: Place) -> None:
        """Handle a move of the bot to `place` by somebody else: end the room in order and open the next one there.

        A room that goes on where it was, although the bot was moved while nobody looked, has moved the bot itself.
        """
        entry = self._entries.get(place.guild_id)
        if entry is None or entry.ending or entry.restarting:
            return
        if place.channel_id == (entry.next_place or entry.place).channel_id:
            return
        entry.next_place = place
        entry.room.close(MOVED)

    async def _end(self, guild_id: int, reason: str) -> None:
        entry = self._entries.get(guild_id)
        if entry is None or entry.task is None:
            return
        entry.ending, entry.next_place = True, None
        if entry.restarting:
            entry.task.cancel()
        else:
            entry.room.close(reason)
        done, _ = await asyncio.wait({entry.task}, timeout=CLOSE_TIMEOUT_S)
        if not done:
            log.warning("room_close_timed_out", guild_id=guild_id, timeout_s=CLOSE_TIMEOUT_S)
            entry.task.cancel()
            await asyncio.wait({entry.task}, timeout=CUT_OFF_S)

    async def _run_room(self, entry: _Entry, started: asyncio.Future[None]) -> None:
        """Run a guild's room until it is closed. After a crash, restart it; after a move, restart it in the new
        channel.
        """
        guild_id = entry.place.guild_id
        restarts = RoomRestarts()
        was_moved = False
        try:
            while True:
                begun_at = self._clock.monotonic()
                error = await self._run_once(entry, started)
                if isinstance(error, StaleOwnerError):
                    # Starting again would take the room back, and the two would go on like that.
                    if not started.done():
                        started.set_exception(error)
                    await entry.place.write(sentence_of(error))
                    return
                if entry.next_place is not None:
                    entry.place, entry.next_place = entry.next_place, None
                    entry.room = self._make_room(entry.place, entry.listen)
                    was_moved = True
                    continue
                if error is None:
                    return
                if not started.done():
                    # The first start: `join` raises the error, and the person may try again.
                    started.set_exception(error)
                    if not (entry.ran_on and waits_for_database(error, has_opened=False)):
                        return
                if entry.ending:
                    # Nobody wants it back.
                    return
                if waits_for_database(error, has_opened=entry.room.opened.is_set()):
                    await self._wait_for_database(entry, error)
                    entry.room = self._make_room(entry.place, entry.listen)
                    continue
                entry.waits = False
                if was_moved and not entry.room.opened.is_set():
                    # The bot may not join there; trying again would not help.
                    await entry.place.write(Text("I could not come along. {why}", why=_crash_sentence(error)))
                    return
                if isinstance(error, NotAnnouncedError):
                    # Trying again would not help before somebody changes the permissions.
                    await entry.place.write(sentence_of(error))
                    return
                was_moved = False
                pause_s = restarts.pause_after(error, ran_s=self._clock.monotonic() - begun_at)
                entry.restarting = True
                if pause_s is None:
                    await self._tell_given_up(entry, error, restarts.crashes)
                    return
                await self._wait_after_crash(entry, error, pause_s)
                entry.restarting = False
                entry.room = self._make_room(entry.place, entry.listen)
        finally:
            for telling in entry.telling:
                telling.cancel()
            try:
                await self._leave_behind(guild_id)
            finally:
                if self._entries.get(guild_id) is entry:
                    del self._entries[guild_id]
                if not started.done():
                    started.set_exception(SetupError(Text("The room closed before it was open. Try /join again.")))
                if started.done() and not started.cancelled():
                    # Nobody may be waiting; mark the error as retrieved, since it is logged already.
                    started.exception()

    async def _leave_behind(self, guild_id: int) -> None:
        """Take the bot out of a channel that its room could not leave. Whatever fails, the room is over."""
        if self._left_behind is None:
            return
        try:
            async with asyncio.timeout(LEFT_BEHIND_S):
                await self._left_behind(guild_id)
        except Exception:
            log.exception("bot_left_in_channel", guild_id=guild_id, remedy="use /join and /leave on that server")

    async def _run_once(self, entry: _Entry, started: asyncio.Future[None]) -> Exception | None:
        """Run the room once. Return the error it crashed with, or None when it ended in order."""
        guild_id, room = entry.place.guild_id, entry.room
        opening = asyncio.create_task(room.opened.wait(), name=f"room-opening-{guild_id}")
        opening.add_done_callback(lambda task: None if task.cancelled() or started.done() else started.set_result(None))
        try:
            reason = await room.run()
            log.info("room_ended", guild_id=guild_id, reason=reason)
            if reason in DECLINING_ENDS:
                self._declined.add(entry.place.channel_id)
            if reason == "expelled" and not started.done():
                return RemovedFromChannelError()
            return None
        except Exception as error:
            # A crash of one room must not end another.
            cause = first_cause(error)
            if isinstance(cause, StaleOwnerError):
                log.error("room_taken_over", guild_id=guild_id, problem=cause)  # noqa: TRY400 - no crash
                return cause
            if isinstance(cause, ProcessLostError):
                log.error("room_process_lost", guild_id=guild_id, problem=cause)  # noqa: TRY400 - nothing here failed
                return cause
            if waits_for_database(cause, has_opened=room.opened.is_set()):
                if not entry.waits:
                    log.error("room_not_opened", guild_id=guild_id, problem=cause)  # noqa: TRY400 - no crash
                return cause
            log.exception("room_crashed", guild_id=guild_id, error_class=type(cause).__name__)
            return cause
        finally:
            opening.cancel()

    async def _tell_given_up(self, entry: _Entry, error: Exception, crashes: int) -> None:
        await entry.place.write(
            Text(
                "{why} I have failed {count} times in a row, so I stop. Use /join to call me back.",
                why=_crash_sentence(error),
                count=crashes,
            )
        )

    async def _wait_for_database(self, entry: _Entry, error: Exception) -> None:
        """Write into the channel once that the room waits, and pause."""
        entry.restarting = True
        if not entry.waits:
            entry.waits = True
            await entry.place.write(
                Text(
                    "{why} I try again every {seconds} s until I can store again; what was said before is kept.",
                    why=sentence_of(error),
                    seconds=DATABASE_PAUSE_S,
                )
            )
        await self._clock.sleep(DATABASE_PAUSE_S)
        entry.restarting = False

    async def _wait_after_crash(self, entry: _Entry, error: Exception, pause_s: float) -> None:
        """Write into the channel and wait. Without a pause nobody waits for Discord to show the message either."""
        why = _crash_sentence(error)
        if not pause_s:
            telling = asyncio.create_task(
                entry.place.write(Text("{why} I go on at once; what was said before is kept.", why=why)),
                name=f"room-lost-{entry.place.guild_id}",
            )
            entry.telling.add(telling)
            telling.add_done_callback(entry.telling.discard)
            return
        await entry.place.write(
            Text("{why} I am starting again in {seconds} s; what was said before is kept.", why=why, seconds=pause_s)
        )
        await self._clock.sleep(pause_s)


def _people_in(place: Place) -> int:
    return sum(not person.is_bot for person in place.members())


def _crash_sentence(error: Exception) -> Text:
    return sentence_of(error) if isinstance(error, KNOWN_ERRORS) else Text("Something in me broke.")
