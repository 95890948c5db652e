"""Finds a process for each room: a child of the gateway process, or one that another machine offers."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import structlog

from bot.errors import SetupError
from bot.remote.hello import is_machine_name
from bot.remote.room_child import START_WITHIN_S
from bot.remote.room_process import THIS_MACHINE, DistantProcess, LinkedChild
from bot.remote.spare_pool import SparePool
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from types import TracebackType

    from bot.clock import Clock
    from bot.remote.hello import RoomIdentity
    from bot.remote.link import MessageLink
    from bot.remote.room_process import RoomProcess

log = structlog.get_logger()

NOT_OURS = Text("This process of a room was not started by this bot, or was given up.")


def machine_for_room(waiting: Collection[str], rooms: Mapping[str, int]) -> str:
    """Return which of the machines with a process that waits gets the next room: the one with the fewest rooms, and
    among those rather another than the gateway process's own. `rooms`: how many each machine has now.
    """
    return min(waiting, key=lambda machine: (rooms.get(machine, 0), machine == THIS_MACHINE, machine))


class RoomProcesses:
    """The rooms' processes. `command`: starts one here; the number of its run is added. For one event loop.

    *Ownership*: an async context manager. It owns its children and the task that keeps one waiting. Processes of other
    machines are their own machine's.
    """

    def __init__(self, command: Callable[[str], Sequence[str]], clock: Clock) -> None:
        self._pool = SparePool(command, LinkedChild, clock)
        # Those of other machines that wait for a room, oldest first.
        self._offers: list[DistantProcess] = []
        self._rooms: Counter[str] = Counter()
        self._keeping: asyncio.Task[None] | None = None

    @property
    def distant_rooms(self) -> int:
        """Return how many rooms run on other machines."""
        return sum(count for machine, count in self._rooms.items() if machine != THIS_MACHINE)

    @property
    def waiting_machines(self) -> set[str]:
        """Return the machines on which a process waits for a room, loaded."""
        waiting = {offer.machine for offer in self._offers if offer.is_alive}
        if self._pool.spare is not None and self._pool.spare.is_loaded:
            waiting.add(THIS_MACHINE)
        return waiting

    async def __aenter__(self) -> Self:
        self._keeping = asyncio.create_task(self._pool.keep(), name="room-spare")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._keeping is not None, "entered"
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)
        await self._pool.kill_all()

    def on_link(self, room: RoomIdentity, link: MessageLink) -> None:
        """Take the link of a child. Raises `BotError` if nobody here has started it."""
        process = self._pool.find(room.run_id)
        if process is None:
            raise SetupError(NOT_OURS)
        process.on_link(link)

    def on_offer(self, room: RoomIdentity, link: MessageLink) -> None:
        """Take the link of a process of another machine, which waits for a room.

        Raises `BotError` for one that has a room: it was given up, or belongs to a gateway process that is gone, and
        its room is started anew. So it hands over what it has.
        """
        if room.guild_id or not is_machine_name(room.machine):
            raise SetupError(NOT_OURS)
        process = DistantProcess(room.machine, room.run_id, link)
        link.on_closed(lambda: self._withdraw(process))
        self._offers.append(process)
        log.info("room_process_offered", machine=process.machine, run_id=process.run_id)

    def _withdraw(self, process: DistantProcess) -> None:
        if process in self._offers:
            self._offers.remove(process)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[RoomProcess]:
        """Yield a process for one room; it is loaded. It has ended afterwards. Raises `SetupError`."""
        process: RoomProcess = self._waiting() or await self._pool.start()
        self._rooms[process.machine] += 1
        try:
            await process.loaded(START_WITHIN_S)
            yield process
        except BaseException:
            await process.kill()
            raise
        finally:
            self._rooms[process.machine] -= 1
            await self._ended(process)

    def _waiting(self) -> RoomProcess | None:
        """Return the process that a room gets, which does not wait any more; None: one must be started here."""
        waiting = self.waiting_machines
        if not waiting:
            # It may be loading.
            return self._pool.take() if self._pool.spare is not None else None
        machine = machine_for_room(waiting, self._rooms)
        if machine == THIS_MACHINE:
            return self._pool.take()
        process = next(offer for offer in self._offers if offer.machine == machine and offer.is_alive)
        self._withdraw(process)
        return process

    async def _ended(self, process: RoomProcess) -> None:
        try:
            await process.end()
        finally:
            if isinstance(process, LinkedChild):
                self._pool.forget(process)
