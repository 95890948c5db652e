"""The room of one guild: starts again after a crash, and in the channel that somebody moves the bot to.

A crash is written into the text channel, and the next room resumes the session. `bot.room.lifecycle` decides what comes
next; here are the task, the log and what others do about it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final, assert_never

import structlog

from bot.background_task import background_task, logged_task
from bot.errors import SetupError, first_cause
from bot.health import SEE_LOG, Actor, FaultKind, HealthFault
from bot.posts.notice import NotAnnouncedError
from bot.room.leaving import (
    EMPTY,
    EXPELLED,
    HANDED_OVER,
    MOVED,
    NOT_ANNOUNCED,
    PROCESS_ENDS,
    TAKEN_OVER_ERRORS,
)
from bot.room.lifecycle import Crash, Ending, Moving, Over, Pausing, RoomLifecycle, Running, waits_for_database
from bot.texts.text import Text
from compaction.errors import StoreError
from voice.cancellation import fail_if_cancelled_inside, run_shielded
from voice.errors import RemovedFromChannelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.room.auto_joiner import AutoJoiner
    from bot.room.room import Room
    from bot.server_settings import ListenRequest

    EndSession = Callable[[RoomChannel], Awaitable[None]]
    MakeRoom = Callable[[RoomChannel, ListenRequest | None], Room]

log = structlog.get_logger()

# Time for a sentence to end (`conversation.speaking`) and the last words to become turns (`conversation`; 30 s at
# most together), and for what is quick unless Discord or the database stalls. If that is cut off, the next start goes
# on with the session. With the other parts' ends it is less than `bot.cli.run` allows.
CLOSE_TIMEOUT_S = 35.0
# How long a room that was cut off may take to close its connection.
CUT_OFF_S = 5.0
# Ending a session is one statement.
END_SESSION_S = 5.0

COMES_BACK = "I try again until the database takes it; a start before that brings me back to the channel"

RESTARTING = HealthFault(
    FaultKind.ROOM_DEAF,
    Text("I had a problem in this voice channel. I am starting again here."),
    SEE_LOG,
    acts=Actor.NOBODY,
)


class GuildRoom:
    """Runs the rooms of a guild, one after the other: `current` in `channel`, which `make_room` makes. `listen`:
    what is said there is written down, also after a crash or a move. `auto_joiner`: told the channel and the reason
    when somebody ends the room, also the channel that it is moved to, and each time that one has ended in order or
    could tell nobody that it listens. `end_session`: ends what the rooms of a channel's server have left open and
    nobody shall resume, and raises `StoreError`; None: rooms store no sessions.

    `session_left_open`: once it is over, whether nobody shall resume the session, and the database did not end it.

    *Ownership*: owns `task`, which is done when no further room follows, and the one in which that cleans up.
    """

    def __init__(
        self,
        channel: RoomChannel,
        *,
        make_room: MakeRoom,
        listen: ListenRequest | None,
        clock: Clock,
        auto_joiner: AutoJoiner,
        end_session: EndSession | None,
    ) -> None:
        self.current = make_room(channel, listen)
        self._lifecycle = RoomLifecycle(channel)
        self._make_room = make_room
        self._listen = listen
        self._clock = clock
        self._auto_joiner = auto_joiner
        self._end_session = end_session
        # Done when a room has opened for the first time, or it is known why none did.
        self._first_opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_cut_off = False
        self.session_left_open = False
        self.task = logged_task(self._run(), name=f"room-{self.guild_id}")

    @property
    def guild_id(self) -> int:
        """Return whose room it is."""
        return self.channel.guild_id

    @property
    def channel(self) -> RoomChannel:
        """Return where the room is."""
        return self._lifecycle.state.channel

    @property
    def bound_for(self) -> RoomChannel | None:
        """Return where the next room opens if the bot is being moved, else where it is. None: no further room follows,
        or it ends by itself because everybody has left.
        """
        return None if self._is_over or self._own_end == EMPTY else self._lifecycle.bound_for

    @property
    def is_ending(self) -> bool:
        """Return whether the room was asked to end, ends by itself, or is over."""
        return isinstance(self._lifecycle.state, Ending | Over) or self._own_end is not None

    @property
    def _own_end(self) -> str | None:
        """Return why the room that runs is ending by itself; None: it is not. One that is moved was asked to."""
        return self.current.ending if isinstance(self._lifecycle.state, Running) else None

    @property
    def _is_over(self) -> bool:
        """Return whether no further room follows. The bot may still be in the channel, until it was taken out."""
        return isinstance(self._lifecycle.state, Over)

    # -- life -------------------------------------------------------------------------------------------------------

    async def wait_opened(self) -> None:
        """Wait until the bot has joined the channel. Raises what ended the room before that.

        *Cancellation*: the room goes on.
        """
        await asyncio.shield(self._first_opened)

    async def end(self, reason: str) -> None:
        """End the room in order, and wait for that."""
        self._ask_to_end(reason)
        await self.let_end()

    async def hand_over(self) -> None:
        """End the room at a pause in speech. The process that serves this server next goes on with its session."""
        await until_pause(self.current, self._clock)
        await self.end(HANDED_OVER)

    async def let_end(self) -> None:
        """Wait for the end of a room that is ending. One that takes longer than `CLOSE_TIMEOUT_S` is cut off.

        *Cancellation*: the room ends all the same.
        """
        done, _ = await asyncio.wait({self.task}, timeout=CLOSE_TIMEOUT_S)
        if not done:
            log.warning("room_close_timed_out", guild_id=self.guild_id, timeout_s=CLOSE_TIMEOUT_S)
            self._apply_own_end()
            self._cut_off()
            await asyncio.wait({self.task}, timeout=CUT_OFF_S)

    def on_taken_out(self) -> None:
        """End the room because somebody has taken the bot out of the channel, if nothing else sees that: it is being
        moved, rests after a crash, or waits for another process.
        """
        # What opens for the first time has asked to come in by itself.
        room_sees_it = self.current.opened.is_set() or not self._first_opened.done()
        if self._lifecycle.overlooks_removal(room_sees_it=room_sees_it):
            log.info("bot_taken_out", guild_id=self.guild_id)
            self._ask_to_end(EXPELLED)

    def _ask_to_end(self, reason: str) -> None:
        before, where = self._lifecycle.state, {self.channel, self._lifecycle.bound_for}
        self._apply_own_end()
        self._lifecycle.ask_to_end(reason)
        for channel in where:
            # Now: a room that has crashed, or is cut off, does not end in order any more.
            self._auto_joiner.on_room_end(channel, reason)
        match before:
            case Running() | Moving() | Ending():
                self.current.close(reason)
            case Pausing():
                self._cut_off()
            case Over():
                pass
            case _ as never:
                assert_never(never)

    def _apply_own_end(self) -> None:
        """Nobody wants a room back that crashes, or is cut off, while it ends by itself."""
        if (reason := self._own_end) is not None:
            self._auto_joiner.on_room_end(self.channel, reason)
            self._lifecycle.ask_to_end(reason)

    def cancel(self) -> None:
        """Cut the room off without saving. Its session stays open, and no further room follows."""
        self._lifecycle.ask_to_end(PROCESS_ENDS)
        self._cut_off()

    def _cut_off(self) -> None:
        """Cancel the room's task, once: if several people send the bot away, the second cancellation would break off
        what the room does because of the first one. What is done once it is over has limits of its own.
        """
        if not self._is_cut_off and not self._is_over:
            self._is_cut_off = True
            self.task.cancel()

    def move_to(self, channel: RoomChannel) -> None:
        """End the room in order and open the next one in `channel`, unless the room is there or ends already."""
        if self._lifecycle.move_to(channel):
            self.current.close(MOVED)

    def faults(self) -> list[HealthFault]:
        """Return why the room cannot do its work: its faults, or that it is being started again."""
        match self._lifecycle.state:
            case Pausing():
                return [RESTARTING]
            case Running(waits=True) if not self.current.opened.is_set():
                # It is tried again every few seconds, which nobody shall take for a recovery.
                return [*self.current.faults(), RESTARTING]
            case Over():
                return []
        return self.current.faults()

    # -- the task ---------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await self._run_rooms()
        finally:
            self._lifecycle.cut_off(has_opened=self.current.opened.is_set())
            try:
                # Somebody may send the bot away meanwhile, which cancels a room that has crashed.
                await run_shielded(self._end_open_session(), name=f"room-end-{self.guild_id}")
            finally:
                self._fail_opening(SetupError(Text("The session ended before it began. Use /join again.")))

    async def _run_rooms(self) -> None:
        """Run one room after the other, until it is over."""
        while True:
            begun_at = self._clock.monotonic()
            ended = await self._run_current()
            notice = self._apply_outcome(ended, ran_s=self._clock.monotonic() - begun_at)
            state = self._lifecycle.state
            if notice is not None:
                await state.channel.write(notice)
            if isinstance(state, Pausing):
                await self._clock.sleep(state.pause_s)
                self._lifecycle.pause_over()
            if self._is_over:
                return
            self.current = self._make_room(self.channel, self._listen)

    async def _run_current(self) -> str | Exception:
        """Run the room once. Return why it ended in order, or the error that it crashed with."""
        guild_id, room = self.guild_id, self.current
        try:
            async with background_task(self._notice_opening(room), name=f"room-opening-{guild_id}"):
                reason = await fail_if_cancelled_inside(room.run)
        except Exception as error:
            # A crash of one room must not end another.
            cause = first_cause(error)
            if isinstance(cause, TAKEN_OVER_ERRORS):
                log.error("room_taken_over", guild_id=guild_id, problem=cause)  # noqa: TRY400 - no crash
            elif not waits_for_database(cause, has_opened=room.opened.is_set()):
                log.exception("room_crashed", guild_id=guild_id, error_class=type(cause).__name__)
            elif not self._lifecycle.waits:
                log.error("room_not_opened", guild_id=guild_id, problem=cause)  # noqa: TRY400 - no crash
            return cause
        log.info("room_ended", guild_id=guild_id, reason=reason)
        return reason

    async def _notice_opening(self, room: Room) -> None:
        await room.opened.wait()
        if not self._first_opened.done():
            self._first_opened.set_result(None)

    def _fail_opening(self, error: Exception) -> None:
        """Raise `error` in `wait_opened`, unless a room has opened."""
        if not self._first_opened.done():
            self._first_opened.set_exception(error)
            # Nobody may be waiting; mark the error as retrieved, since it is logged already.
            self._first_opened.exception()

    def _apply_outcome(self, ended: str | Exception, *, ran_s: float) -> Text | None:
        """Decide what comes after a room that has ended. Return what is written into its channel."""
        self._listen = self.current.listen
        if isinstance(self._lifecycle.state, Moving):
            self._listen = _in_next_channel(self._listen, self._lifecycle.state)
        error: Exception | None
        notice: Text | None = None
        has_opened = self.current.opened.is_set()
        if isinstance(ended, Exception):
            error = ended
            self._apply_own_end()
            if isinstance(error, NotAnnouncedError):
                self._auto_joiner.on_room_end(self.channel, NOT_ANNOUNCED)
            is_awaited = not self._first_opened.done()
            notice = self._lifecycle.room_crashed(Crash(error, ran_s, has_opened=has_opened, is_awaited=is_awaited))
        else:
            error = RemovedFromChannelError() if ended == EXPELLED else None
            self._auto_joiner.on_room_end(self.channel, ended)
            self._lifecycle.room_ended(ended, has_opened=has_opened, left_open=self.current.left_session_open)
        if error is not None and not isinstance(self._lifecycle.state, Running):
            self._fail_opening(error)
        return notice

    async def _end_open_session(self) -> None:
        """End the session of a room that has crashed, was cut off, or could not store its end, if nobody wants the bot
        back.
        """
        if not self._lifecycle.is_session_unwanted or self._end_session is None:
            return
        try:
            async with asyncio.timeout(END_SESSION_S):
                await self._end_session(self.channel)
        except (StoreError, TimeoutError) as error:
            self.session_left_open = True
            log.warning("session_left_open", guild_id=self.guild_id, problem=error, remedy=COMES_BACK)


def _in_next_channel(listen: ListenRequest | None, moving: Moving) -> ListenRequest | None:
    """Return how the bot writes down where it is moved to."""
    if listen is not None and listen.channel_id == moving.channel.channel_id:
        # What is said in one voice channel does not go into the chat of another.
        return replace(listen, channel_id=moving.to.channel_id)
    return listen


# At first a real pause is needed, and less and less of one as time passes; then the room is left in any case.
PAUSE_S: Final = 1.0
WITHIN_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.05


async def until_pause(room: Room, clock: Clock) -> None:
    """Wait for a pause in a room, `WITHIN_S` at most."""
    now = begun_at = busy_at = clock.monotonic()
    while now - begun_at < WITHIN_S:
        if room.is_busy():
            busy_at = now
        elif now - busy_at >= PAUSE_S * max(0.0, 1.0 - (now - begun_at) / WITHIN_S):
            return
        await clock.sleep(_LOOK_EVERY_S)
        now = clock.monotonic()
