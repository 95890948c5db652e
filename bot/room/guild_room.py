"""The room of one guild: starts again after a crash, and in the channel that somebody moves the bot to.

A crash is written into the text channel (`bot.room.restart_notices`), and the next room resumes the session.
`bot.room.restarts` decides when it starts. A room that another process has taken over stays ended.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.background_task import logged_task
from bot.errors import SetupError, first_cause
from bot.health import FaultKind, HealthFault
from bot.room.announcer import NotAnnouncedError
from bot.room.endings import EXPELLED, LEFT, MOVED, NOT_ANNOUNCED, ProcessLostError
from bot.room.first_opening import FirstOpening
from bot.room.restart_notices import RestartNotices
from bot.room.restarts import DATABASE_PAUSE_S, RoomRestarts, waits_for_database
from bot.texts.text import Text, sentence_of
from compaction.errors import StaleOwnerError, StoreError
from voice.errors import RemovedFromChannelError
from voice.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.channel.port import ListenRequest, Place
    from bot.clock import Clock
    from bot.room.port import SupervisedRoom

    MakeRoom = Callable[[Place, ListenRequest | None], SupervisedRoom]

log = structlog.get_logger()

# Time for a sentence to end (`conversation.speaking`) and the last words to become turns (`conversation`; 30 s at
# most together), and for what is quick unless Discord or the database stalls. If that is cut off, the next start goes
# on with the session. With the other parts' ends it is less than `bot.cli.run` allows.
CLOSE_TIMEOUT_S = 35.0
# How long a room that was cut off may take to close its connection.
CUT_OFF_S = 5.0
# Asking Discord to take the bot out of a channel is one message.
LEAVE_CHANNEL_S = 5.0
# Ending a session is one statement.
END_SESSION_S = 5.0

RESTARTING = HealthFault(FaultKind.ROOM_DEAF, "A room has broken down and is being opened again; the log says why.")


class LeaveChannel(Protocol):
    """Takes the bot out of a channel in which no further room is started, if the last room could not."""

    async def __call__(self, guild_id: int, /, *, taken_over: bool) -> None:
        """Take the bot out of the server's channel. `taken_over`: let it stay, another process has a room there."""


class GuildRoom:
    """Runs the room of a guild, one after the other: `current` in `place`. `first`: the first one to run; `make_room`
    makes those that follow. `listen`: the bot only writes down there, also after a crash or a move; `stored_listen`:
    returns that of the session that has begun, which an earlier room may have been asked for. `ran_on`: the first
    one ran already, so nobody has asked for it who could ask again. `on_room_end`: gets the place and the reason when
    somebody ends the room, and each time that one has ended in order or could tell nobody that it listens.
    `leave_channel`: see `LeaveChannel`. `end_session`: ends the session that a room in this place has left open.

    *Ownership*: owns the task between `begin` and `end`, or `cancel`, and the one in which that cleans up.
    """

    def __init__(
        self,
        place: Place,
        first: SupervisedRoom,
        *,
        make_room: MakeRoom,
        listen: ListenRequest | None,
        stored_listen: Callable[[], ListenRequest | None],
        ran_on: bool,
        clock: Clock,
        on_room_end: Callable[[Place, str], None],
        leave_channel: LeaveChannel | None,
        end_session: Callable[[Place], Awaitable[None]] | None,
    ) -> None:
        self.place = place
        self.current = first
        # Whether somebody has asked it to end.
        self.is_ending = False
        # Whether no further room follows. The bot may still be in the channel, until it was taken out.
        self.is_over = False
        self._make_room = make_room
        self._listen = listen
        self._stored_listen = stored_listen
        self._ran_on = ran_on
        self._clock = clock
        self._on_room_end = on_room_end
        self._leave_channel = leave_channel
        self._end_session = end_session
        # Somebody has sent the bot away.
        self._is_sent_away = False
        self._is_cut_off = False
        # The last room has ended in order, and with it its session.
        self._has_ended = False
        self._is_taken_over = False
        self._restarts = RoomRestarts()
        self._notices = RestartNotices()
        self._first_opening = FirstOpening()
        self._task: asyncio.Task[None] | None = None
        # True between a crash and the restart: there is no room to end in order.
        self._is_restarting = False
        # The room could not begin because the database is away, and tries again.
        self._waits = False
        # The channel that somebody moved the bot to; the next room opens there.
        self._next_place: Place | None = None
        # A room that has not opened yet is where somebody moved the bot to.
        self._was_moved = False

    @property
    def bound_for(self) -> Place:
        """Return where the next room opens if the bot is being moved, else where it is."""
        return self._next_place or self.place

    @property
    def listen(self) -> ListenRequest | None:
        """Return how the bot only writes down; None if it takes part."""
        if not self.current.opened.is_set():
            return self._listen
        # A room that resumes a session finds out by itself that it only writes down.
        return self._stored_listen() or self._listen

    # -- life -------------------------------------------------------------------------------------------------------

    def begin(self, on_over: Callable[[], object]) -> None:
        """Start the first room. `on_over` is called when no further room follows."""
        self._task = logged_task(self._run(on_over), name=f"room-{self.place.guild_id}")

    async def wait_opened(self) -> None:
        """Wait until the bot has joined the channel. Raises what ended the room before that.

        *Cancellation*: the room goes on.
        """
        await self._first_opening.wait()

    async def wait_over(self) -> None:
        """Wait until no further room follows."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def end(self, reason: str) -> None:
        """End the room in order. One that takes longer than `CLOSE_TIMEOUT_S` is cut off."""
        if self._task is None:
            return
        self.is_ending, self._next_place = True, None
        self._is_sent_away = reason == LEFT
        # Now: a room that has crashed, or is cut off, does not end in order any more.
        self._on_room_end(self.place, reason)
        if self._is_restarting:
            self._cut_off()
        else:
            self.current.close(reason)
        done, _ = await asyncio.wait({self._task}, timeout=CLOSE_TIMEOUT_S)
        if not done:
            log.warning("room_close_timed_out", guild_id=self.place.guild_id, timeout_s=CLOSE_TIMEOUT_S)
            self._cut_off()
            await asyncio.wait({self._task}, timeout=CUT_OFF_S)

    def cancel(self) -> None:
        """Cut the room off without saving. Its session stays open, and no further room follows."""
        self.is_ending, self._next_place = True, None
        self._cut_off()

    def _cut_off(self) -> None:
        """Cancel the room's task, once: if several people send the bot away, the second cancellation would break off
        what the room does because of the first one.
        """
        if self._task is not None and not self._is_cut_off:
            self._is_cut_off = True
            self._task.cancel()

    def move_to(self, place: Place) -> None:
        """End the room in order and open the next one in `place`, unless the room is there or ends already."""
        if self.is_ending or self.is_over or self._is_restarting:
            return
        if place.channel_id == self.bound_for.channel_id:
            return
        self._next_place = place
        self.current.close(MOVED)

    def faults(self) -> list[HealthFault]:
        """Return why the room cannot do its work: its faults, or that it is being started again."""
        if self._is_restarting:
            return [RESTARTING]
        # One that waits for the database is tried again every few seconds, which nobody shall take for a recovery.
        waiting = [RESTARTING] if self._waits and not self.current.opened.is_set() else []
        return [*self.current.faults(), *waiting]

    # -- the task ---------------------------------------------------------------------------------------------------

    async def _run(self, on_over: Callable[[], object]) -> None:
        try:
            begun_at = self._clock.monotonic()
            while await self._goes_on_after(await self._run_current(), begun_at):
                self.current = self._make_room(self.place, self._listen)
                begun_at = self._clock.monotonic()
        finally:
            # Before anybody hears that it could not begin: who comes now is not told that there is a room.
            self.is_over = True
            try:
                # Somebody may send the bot away meanwhile, which cancels a room that has crashed.
                await run_shielded(self._clean_up(), name=f"room-end-{self.place.guild_id}")
            finally:
                on_over()
                self._first_opening.fail(SetupError(Text("The room closed before it was open. Try /join again.")))

    async def _run_current(self) -> Exception | None:
        """Run the room once. Return the error it crashed with, or None when it ended in order."""
        guild_id, room = self.place.guild_id, self.current
        self._has_ended = False
        try:
            async with self._first_opening.watching(room, name=f"room-opening-{guild_id}"):
                reason = await room.run()
            self._has_ended = True
            log.info("room_ended", guild_id=guild_id, reason=reason)
            self._on_room_end(self.place, reason)
            return RemovedFromChannelError() if reason == EXPELLED and not self._first_opening.is_settled else None
        except Exception as error:
            # A crash of one room must not end another.
            cause = first_cause(error)
            if isinstance(cause, StaleOwnerError):
                log.error("room_taken_over", guild_id=guild_id, problem=cause)  # noqa: TRY400 - no crash
                return cause
            if isinstance(cause, ProcessLostError):
                log.error("room_process_lost", guild_id=guild_id, problem=cause)  # noqa: TRY400 - nothing here failed
                return cause
            if isinstance(cause, NotAnnouncedError):
                self._on_room_end(self.place, NOT_ANNOUNCED)
            if waits_for_database(cause, has_opened=room.opened.is_set()):
                if not self._waits:
                    log.error("room_not_opened", guild_id=guild_id, problem=cause)  # noqa: TRY400 - no crash
                return cause
            log.exception("room_crashed", guild_id=guild_id, error_class=type(cause).__name__)
            return cause

    async def _goes_on_after(self, error: Exception | None, begun_at: float) -> bool:
        """Return whether another room follows the one that began at `begun_at` and ended with `error`; True as soon as
        it may start. None: it ended in order.
        """
        if isinstance(error, StaleOwnerError):
            # Starting again would take the room back, and the two would go on like that.
            self._is_taken_over = True
            self._first_opening.fail(error)
            await self.place.write(sentence_of(error))
            return False
        if self._next_place is not None:
            self._listen = self._listen_in(self._next_place)
            self.place, self._next_place = self._next_place, None
            self._was_moved = True
            return True
        if error is None:
            return False
        if not self._first_opening.is_settled:
            # The first start: `wait_opened` raises the error, and the person may try again.
            self._first_opening.fail(error)
            if not (self._ran_on and waits_for_database(error, has_opened=False)):
                return False
        # Nobody wants one back that was asked to end.
        return not self.is_ending and await self._starts_again_after(error, ran_s=self._clock.monotonic() - begun_at)

    async def _starts_again_after(self, error: Exception, *, ran_s: float) -> bool:
        """Return whether a room that has ended with `error` starts again where it was; True as soon as it may."""
        if waits_for_database(error, has_opened=self.current.opened.is_set()):
            await self._wait_for_database(error)
            return True
        self._waits = False
        if self._was_moved and not self.current.opened.is_set():
            # The bot may not join there; trying again would not help.
            await self._notices.write_not_moved(self.place, error)
            return False
        if isinstance(error, NotAnnouncedError):
            # Trying again would not help before somebody changes the permissions.
            await self.place.write(sentence_of(error))
            return False
        self._was_moved = False
        return await self._restarts_after(error, ran_s=ran_s)

    def _listen_in(self, place: Place) -> ListenRequest | None:
        """Return how the bot writes down in `place`, to which it was moved."""
        listen = self.listen
        if listen is not None and listen.channel_id == self.place.channel_id:
            # What is said in one voice channel does not go into the chat of another.
            return replace(listen, channel_id=place.channel_id)
        return listen

    async def _wait_for_database(self, error: Exception) -> None:
        """Write into the channel once that the room waits, and pause."""
        self._is_restarting = True
        if not self._waits:
            self._waits = True
            await self._notices.write_waiting(self.place, error)
        await self._clock.sleep(DATABASE_PAUSE_S)
        self._is_restarting = False

    async def _restarts_after(self, error: Exception, *, ran_s: float) -> bool:
        """Write the crash into the channel and pause. Return whether the room starts again; False: it is given up."""
        pause_s = self._restarts.pause_after(error, ran_s=ran_s)
        self._is_restarting = True
        if pause_s is None:
            await self._notices.write_giving_up(self.place, error, crashes=self._restarts.crashes)
            return False
        if pause_s:
            await self._notices.write_pausing(self.place, error, pause_s=pause_s)
            await self._clock.sleep(pause_s)
        else:
            self._notices.write_going_on(self.place, error)
        self._is_restarting = False
        return True

    async def _clean_up(self) -> None:
        """End what the last room has left behind."""
        await self._notices.close()
        await self._take_out_of_channel()
        await self._end_open_session()

    async def _take_out_of_channel(self) -> None:
        """Take the bot out of a channel that its room could not leave. Whatever fails, the room is over."""
        if self._leave_channel is None:
            return
        guild_id = self.place.guild_id
        try:
            async with asyncio.timeout(LEAVE_CHANNEL_S):
                await self._leave_channel(guild_id, taken_over=self._is_taken_over)
        except Exception:
            log.exception("bot_left_in_channel", guild_id=guild_id, remedy="use /join and /leave on that server")

    async def _end_open_session(self) -> None:
        """End the session of a room that has crashed or was cut off, if somebody has sent the bot away: otherwise its
        next start would bring it back.
        """
        if self._end_session is None or not self._is_sent_away or self._has_ended:
            return
        try:
            async with asyncio.timeout(END_SESSION_S):
                await self._end_session(self.place)
        except (StoreError, TimeoutError) as error:
            log.warning("session_left_open", guild_id=self.place.guild_id, problem=error)
