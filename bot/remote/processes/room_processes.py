"""Finds a seat for each room: in a child of the gateway process, or in a process that another machine offers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

import structlog

from bot.background_task import logged_task
from bot.errors import SetupError
from bot.remote.link.hello import is_machine_name
from bot.remote.processes.adoption import NOT_OURS
from bot.remote.processes.known_machines import KnownMachines
from bot.remote.processes.machine_losses import MachineLosses
from bot.remote.processes.placement import THIS_MACHINE, ProcessLoad, process_for_room
from bot.remote.processes.room_child import START_WITHIN_S
from bot.remote.processes.room_seat import RoomSeat
from bot.remote.processes.seated_process import DistantProcess, LinkedChild
from bot.remote.processes.spare_pool import SparePool
from bot.room.endings import ProcessLostError
from bot.room.restarts import LOST_AFTER_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from types import TracebackType

    from bot.clock import Clock
    from bot.machine_load import MachineLoad
    from bot.remote.link.hello import RoomIdentity
    from bot.remote.link.message_link import MessageLink
    from bot.remote.processes.adoption import AdoptedRoom, Adoptions

log = structlog.get_logger()

# How long a machine that has lost a room, or hands its rooms over, gets none if another one has a seat: its other
# processes may be gone too, and their links tell it by then at the latest (4.5 s, `link.listener`). In the proof
# a room of a node that hung was started in another process there, lost 0.2 s later, and then paused like a crash.
DOUBT_S = 5.0
# How many processes of other machines are remembered that get no room any more. One that lost its links with its rooms
# offers itself again within a minute, or has ended (`room_side.room_host.GATEWAY_AWAY_S`).
MOST_RETIRED = 1_000


class RoomProcesses:
    """The processes that run rooms. `command`: starts one here; the number of its run is added. `rooms_each`: how many
    rooms one of them runs. `adoptions`: takes back rooms that ran on without a gateway process; None: none are. For one
    event loop.

    *Ownership*: an async context manager. It owns its children and the task that keeps one waiting. Processes of other
    machines are their own machine's.
    """

    def __init__(
        self,
        command: Callable[[str], Sequence[str]],
        clock: Clock,
        *,
        rooms_each: int = 1,
        adoptions: Adoptions | None = None,
    ) -> None:
        self._clock = clock
        self._pool = SparePool(command, partial(LinkedChild, most_rooms=rooms_each), clock)
        # Those that others have started, by machine and run, oldest first.
        self._distant: dict[tuple[str, str], DistantProcess] = {}
        # Those that had their last room, oldest first, also when their links are gone.
        self._retired: dict[tuple[str, str], None] = {}
        self._losses = MachineLosses(clock.monotonic)
        self._machines = KnownMachines(clock)
        # When each other machine last lost a room.
        self._lost_at: dict[str, float] = {}
        # When the room of each server last lost its process, and the same of those that have had no other one since.
        self._room_lost_at: dict[int, float] = {}
        self._urgent_since: dict[int, float] = {}
        # One room after the other, so that rooms which are lost together do not start a process each.
        self._choosing = asyncio.Lock()
        self._adoptions = adoptions
        self._keeping: asyncio.Task[None] | None = None

    def machines(self) -> Sequence[MachineLoad]:
        """Return how loaded each machine is: see `KnownMachines.loads`."""
        return self._machines.loads(process.load for process in self._all())

    async def __aenter__(self) -> Self:
        self._keeping = logged_task(self._pool.keep(), name="room-spare")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._keeping is not None, "entered"
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)
        await self._pool.kill_all()

    def on_link(self, room: RoomIdentity, link: MessageLink) -> Awaitable[None] | None:
        """Take a link of a child, which waits for a room, or of a room that ran on without a gateway process. Raises
        `BotError` if nobody here has started the child, and for a link whose room was given up.
        """
        process = self._pool.find(room.run_id)
        if process is None:
            return self._came_back(replace(room, machine=THIS_MACHINE), link)
        if room.guild_id:
            raise SetupError(NOT_OURS)
        self._watch(process)
        process.on_link(link, emergency=room.emergency)
        return None

    def on_offer(self, room: RoomIdentity, link: MessageLink) -> Awaitable[None] | None:
        """Take a link of a process of another machine, which waits for a room, or has one that ran on.

        Raises `BotError` for one that had its last room, or whose room was given up, and has to be started anew. So it
        ends, and hands over what it has.
        """
        if not is_machine_name(room.machine) or (room.machine, room.run_id) in self._retired:
            raise SetupError(NOT_OURS)
        if room.guild_id:
            return self._came_back(room, link)
        process = self._distant_process(room)
        self._watch(process)
        process.on_link(link, emergency=room.emergency)
        if not room.emergency:
            log.info("room_process_offered", machine=process.machine, run_id=process.run_id, seats=process.seats.free)
        link.on_closed(lambda: self._forget_if_gone(process))
        return None

    def _came_back(self, room: RoomIdentity, link: MessageLink) -> Awaitable[None]:
        """Take back a room whose gateway process was started again. Raises `BotError`."""
        if self._adoptions is None or not room.guild_id:
            raise SetupError(NOT_OURS)
        return self._adoptions.on_room(room, link)

    def _distant_process(self, room: RoomIdentity) -> DistantProcess:
        key = (room.machine, room.run_id)
        if room.machine != THIS_MACHINE:
            self._machines.came(room.machine)
        return self._distant.setdefault(key, DistantProcess(*key))

    def _watch(self, process: LinkedChild | DistantProcess) -> None:
        """Note it if the process is lost while it waits for a room."""
        process.seats.on_lost = partial(self._losses.note, process.machine, process.run_id)

    def _forget_if_gone(self, process: DistantProcess) -> None:
        if not process.seats.opened and not process.seats.rooms:
            self._distant.pop((process.machine, process.run_id), None)
            if all(machine != process.machine for machine, _ in self._distant):
                self._machines.went(process.machine)

    @asynccontextmanager
    async def taken(self, guild_id: int, adopted: AdoptedRoom | None = None) -> AsyncIterator[RoomSeat]:
        """Yield a seat for one room of a server; its process is loaded. It has ended afterwards, and its process with
        its last room, unless the seat was handed back. `adopted`: the room has its seat already. Raises `SetupError`.
        """
        waits_again = False
        async with self._choosing:
            if adopted is not None:
                process: LinkedChild | DistantProcess = self._distant_process(adopted.room)
            else:
                process = self._chosen(guild_id) or await self._pool.start()
            process.seats.reserve(emergency=adopted is None and process.load.free <= 0 < process.load.emergency)
        try:
            if adopted is None:
                link = await process.seats.take(process.loaded(START_WITHIN_S))
            else:
                link = process.seats.taken_back(adopted.link)
            seat = RoomSeat(process, link, guild_id)
            try:
                yield seat
            except BaseException as error:
                if not seat.is_handed_back:
                    self._note_loss(process.machine, guild_id)
                    if isinstance(error, ProcessLostError):
                        self._losses.note(process.machine, process.run_id, error.loss)
                    await seat.kill_if_alone()
                raise
            finally:
                waits_again = seat.is_handed_back
                await seat.end()
        finally:
            process.seats.rooms -= 1
            if not process.seats.rooms and not waits_again:
                await self._retire(process)
            elif isinstance(process, DistantProcess):
                # All its links may have been lost meanwhile.
                self._forget_if_gone(process)

    def _note_loss(self, machine: str, guild_id: int) -> None:
        now = self._lost_at[machine] = self._clock.monotonic()
        recent = {guild_id: at for guild_id, at in self._room_lost_at.items() if now - at < LOST_AFTER_S}
        # One that loses its process again so soon may be what ends it, and shall not end that of another room.
        if guild_id not in recent:
            self._urgent_since[guild_id] = now
        self._room_lost_at = {**recent, guild_id: now}

    def _all(self) -> list[LinkedChild | DistantProcess]:
        return [*self._distant.values(), *self._pool.known]

    def _chosen(self, guild_id: int) -> LinkedChild | DistantProcess | None:
        """Return the process in which the room gets a seat; None: one must be started here."""
        processes = [process for process in self._all() if guild_id not in process.seats.given_up]
        # One that did not come back at once is begun by somebody later, who has not spoken there yet.
        lost_at = self._urgent_since.pop(guild_id, float("-inf"))
        urgent = self._clock.monotonic() - lost_at < LOST_AFTER_S
        index = process_for_room([self._load_of(process) for process in processes], urgent=urgent)
        if index is None:
            return None
        self._pool.take(processes[index].run_id)
        return processes[index]

    def _load_of(self, process: LinkedChild | DistantProcess) -> ProcessLoad:
        lost_at = self._lost_at.get(process.machine, float("-inf"))
        is_here = process.machine == THIS_MACHINE
        return replace(process.load, doubtful=not is_here and self._clock.monotonic() - lost_at < DOUBT_S)

    async def _retire(self, process: LinkedChild | DistantProcess) -> None:
        if isinstance(process, DistantProcess):
            self._remember_retired(process)
        try:
            await process.retire()
        finally:
            if isinstance(process, LinkedChild):
                self._pool.forget(process)
            else:
                self._forget_if_gone(process)

    def _remember_retired(self, process: DistantProcess) -> None:
        """Refuse what the process offers from now on: it may have lost its links, and not know that it shall end."""
        self._retired[process.machine, process.run_id] = None
        if len(self._retired) > MOST_RETIRED:
            del self._retired[next(iter(self._retired))]
