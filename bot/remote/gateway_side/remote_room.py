"""A room that runs in another process, for the supervisor of the gateway process: it takes a seat there, and ends.

It is a `SupervisedRoom` as `bot.room.room.Room` is one. `reported_room` has what the room tells. What commands change
in it goes through its `RemoteParticipation`.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.background_task import owned_task
from bot.channel.whereabouts import COMING
from bot.errors import BotError, SetupError
from bot.machine_load import HERE
from bot.remote.gateway_side.adopted_room import changes_since, take_over_report, until_stored
from bot.remote.gateway_side.member_moves import MemberMoves
from bot.remote.gateway_side.open_request import open_request
from bot.remote.gateway_side.remote_participation import CONFIRM_WITHIN_S, READ_AGAIN_WITHIN_S, RemoteParticipation
from bot.remote.gateway_side.reported_log import follow_log
from bot.remote.gateway_side.reported_room import ReportedRoom
from bot.remote.gateway_side.room_choices import RoomChoices
from bot.remote.messages.figure_messages import FiguresTold
from bot.remote.messages.room_messages import (
    CloseRoom,
    PlaySample,
    ReadMemoryAgain,
    ReportRoom,
    RoomOver,
    SessionBegun,
)
from bot.remote.messages.wire_error import error_from_wire
from bot.remote.processes.placement import THIS_MACHINE
from bot.remote.processes.room_child import ENDED
from bot.room.endings import HANDED_OVER, HandedOverError, ProcessLostError
from bot.texts.text import Text, sentence_of
from compaction.errors import StaleOwnerError, StoreError

if TYPE_CHECKING:
    from typing import Any

    from bot.channel.port import ListenRequest, MembershipChange, Place, UnfinishedWords
    from bot.health import HealthFault
    from bot.models.voices import EmbeddedVoice
    from bot.remote.gateway_side.gateway_parts import GatewayParts
    from bot.remote.messages.room_messages import RoomReport
    from bot.remote.processes.adoption import AdoptedRoom
    from bot.remote.processes.room_seat import RoomSeat

log = structlog.get_logger()

# The room's process reads a few rows before it answers.
OPEN_WITHIN_S = 20.0
# As long as the room itself waits to speak, and a second voice to be loaded.
SAMPLE_WITHIN_S = 120.0

HAD_TO_END = Text("The process that ran this room had to end.")
NOT_TAKEN_BACK = Text("The process that ran this room did not take over what was changed. {why}")


class RemoteRoom:
    """A room in `place`, for one start. `listen`: the bot only writes down there. `adopted`: it runs already.

    *Ownership*: the supervisor runs `run` in a task. *Cancellation*: ends the room without its knowledge.
    """

    def __init__(
        self,
        place: Place,
        parts: GatewayParts,
        listen: ListenRequest | None = None,
        *,
        adopted: AdoptedRoom | None = None,
    ) -> None:
        self._adopted = adopted
        self._place = place
        self._parts = parts
        self._listen = listen
        self._opened = asyncio.Event()
        self._ended = asyncio.Event()
        self._seat: RoomSeat | None = None
        self._over: asyncio.Future[RoomOver] = asyncio.get_running_loop().create_future()
        self._close_reason: str | None = None
        # Ends when somebody closes the room before it has a process.
        self._waiting: asyncio.Timeout | None = None
        self._moves = MemberMoves()
        # What shows and measures the room, until it is over.
        self._shown = ExitStack()
        self._told: ReportedRoom | None = None

    # -- what the supervisor asks ---------------------------------------------------------------------------

    @property
    def opened(self) -> asyncio.Event:
        """Set when the bot has joined the channel and receives its sound."""
        return self._opened

    @property
    def ending(self) -> str | None:
        return self._close_reason or (None if self._told is None else self._told.ending)

    @property
    def left_session_open(self) -> bool:
        return self._over.done() and self._over.result().left_session_open

    async def run(self) -> str:
        """Run until the room has ended in its process and return the reason. Raises the error with which it ended,
        `ProcessLostError`, or `StoreError` if it cannot begin because the database is away.
        """
        try:
            return await self._run()
        except SetupError:
            if self._seat is None:
                # No process can be loaded without the database.
                await self._parts.require_database()
            raise

    async def _run(self) -> str:
        guild = await self._parts.participation.of_guild(self._place.guild_id)
        adopted = self._adopted
        async with AsyncExitStack() as stack:
            seat = self._seat = await self._taken(stack)
            if seat is None:
                return self._close_reason or ""
            participation = RemoteParticipation(seat, guild, ended=self._ended)
            told = self._told = ReportedRoom(
                self._place, self._parts, seat, guild, participation, opened=self._opened, shown=self._shown
            )
            choices = RoomChoices(self._parts, guild, participation, seat.link)
            where = seat.machine or HERE
            log.info("room_placed", guild_id=guild.guild_id, machine=where, run_id=seat.run_id, again=bool(adopted))
            told.handle(seat.link.handlers)
            seat.link.handlers.answer(RoomOver, self._on_over)
            seat.link.handlers.hear(
                FiguresTold,
                lambda each: self._parts.figures.take(where, seat.run_id, each.series, ran_before=adopted is not None),
            )
            if seat.machine != THIS_MACHINE:
                follow_log(seat.link, self._parts.data_folder, seat.machine, self._parts.clock)
            try:
                with self._parts.serve(self._place, seat.link), self._shown:
                    if adopted is None:
                        await self._open(seat, told, choices)
                    else:
                        adopted.admit()
                        await self._take_back(seat, told, choices)
                    return await self._end_of(seat, told)
            except BaseException as error:
                if not self._over.done() and not seat.is_handed_back:
                    await self._give_up(seat, fences=isinstance(error, Exception))
                raise
            finally:
                participation.runs = False
                self._moves.end()
                self._ended.set()
                told.release()

    async def _taken(self, stack: AsyncExitStack) -> RoomSeat | None:
        """Return a seat, which is held until `stack` ends; None if somebody closes the room first."""
        try:
            async with asyncio.timeout(0.0 if self._close_reason else None) as self._waiting:
                return await stack.enter_async_context(self._parts.processes.taken(self._place.guild_id, self._adopted))
        except TimeoutError:
            return None
        finally:
            self._waiting = None

    async def _give_up(self, seat: RoomSeat, *, fences: bool) -> None:
        """End the room without its knowledge. It may go on for a while if its process does, so it can be fenced."""
        await seat.give_up()
        if fences and seat.may_go_on:
            await self._parts.fence(self._place.guild_id)

    async def _open(self, seat: RoomSeat, told: ReportedRoom, choices: RoomChoices) -> None:
        try:
            request = await open_request(self._place, self._parts, self._listen)
            choices.watch(self._shown)
            await seat.link.ask(request, within_s=OPEN_WITHIN_S)
        except StoreError:
            # The process has not taken the room, and waits for it until the database is back.
            seat.hand_back()
            raise
        except BotError:
            if seat.is_open:
                raise
            raise ProcessLostError(ENDED) from None
        await self._tell_all(seat, told, choices)

    async def _take_back(self, seat: RoomSeat, told: ReportedRoom, choices: RoomChoices) -> None:
        """Go on with a room that runs in its process. What was changed since its gateway process was lost is in effect
        there before anybody here knows of the room, also if the database is away then. Raises `ProcessLostError`.
        """

        def goes_on() -> bool:
            return seat.is_open and not self._over.done()

        try:
            report = await seat.link.ask(ReportRoom(), within_s=OPEN_WITHIN_S)
            # The room hears people, so from now on a command is answered when the room has confirmed.
            told.make_known_to_commands(report.session_id)
            told.participation.runs = True
            await take_over_report(report, self._place, told.guild, self._parts.participation, self._parts.clock)
            choices.watch(self._shown)
            await seat.link.ask(changes_since(report, told.guild), within_s=CONFIRM_WITHIN_S)
            read_again = partial(seat.link.ask, ReadMemoryAgain(), within_s=READ_AGAIN_WITHIN_S)
            for work in (partial(self._tell_all, seat, told, choices), read_again):
                on_wait = partial(self._run_on, seat, report)
                await until_stored(work, self._parts.clock, on_wait=on_wait, goes_on=goes_on)
        except BotError as error:
            # It is made stale, and begins anew.
            raise ProcessLostError(NOT_TAKEN_BACK.fill(why=sentence_of(error))) from error
        if not goes_on():
            return
        self._tell_moves(seat, report)
        told.begin(SessionBegun(report.session_id, report.listens_only))
        if report.shows_listening:
            await self._place.show_listening(on=True)

    def _run_on(self, seat: RoomSeat, report: RoomReport) -> None:
        """Take note that the room hears people, although what it has to know cannot be read yet."""
        self._tell_moves(seat, report)
        self._opened.set()

    def _tell_moves(self, seat: RoomSeat, report: RoomReport) -> None:
        self._moves.begin_again(seat.link, report.members, self._place.members())

    async def _tell_all(self, seat: RoomSeat, told: ReportedRoom, choices: RoomChoices) -> None:
        """Tell the room what somebody may have changed before it listened."""
        told.participation.runs = True
        await choices.tell()
        if self._adopted is None:
            self._moves.begin(seat.link)
        if self._close_reason is not None:
            seat.link.tell(CloseRoom(self._close_reason))

    async def _end_of(self, seat: RoomSeat, told: ReportedRoom) -> str:
        async with owned_task(seat.lost(), name=f"room-process-{self._place.guild_id}") as lost:
            either: set[asyncio.Future[Any]] = {lost, self._over}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not self._over.done():
                raise ProcessLostError(lost.result())
        over = self._over.result()
        if over.error is not None:
            error = error_from_wire(over.error)
            if isinstance(error, StaleOwnerError) and told.session_id is None:
                # It never had the room: a process that was given up has claimed it late. That one ends, so again.
                raise ProcessLostError(HAD_TO_END) from error
            raise error
        if over.reason == HANDED_OVER:
            # The session goes on, so another process has to run the room.
            raise HandedOverError(HAD_TO_END)
        return over.reason

    def close(self, reason: str) -> None:
        """Ask the room to end in order. `run` then returns `reason`."""
        self._close_reason = self._close_reason or reason
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(asyncio.get_running_loop().time())
        if self._seat is not None and self._told is not None and self._told.participation.runs:
            self._seat.link.tell(CloseRoom(reason))

    def on_membership(self, change: MembershipChange) -> None:
        self._moves.add(change)

    async def play_sample(self, voice: EmbeddedVoice) -> Text | None:
        if self._seat is None or not self._opened.is_set():
            return COMING.fill(channel=self._place.name)
        try:
            return await self._seat.link.ask(PlaySample(voice.name), within_s=SAMPLE_WITHIN_S)
        except BotError as error:
            return sentence_of(error)

    def status(self) -> Text:
        told = self._told.status() if self._told is not None and self._opened.is_set() else None
        return COMING.fill(channel=self._place.name) if told is None else told

    def unfinished(self) -> tuple[UnfinishedWords, ...]:
        return () if self._told is None else self._told.unfinished()

    def faults(self) -> list[HealthFault]:
        return [] if self._told is None else self._told.faults()

    async def _on_over(self, told: RoomOver) -> None:
        if not self._over.done():
            self._over.set_result(told)
