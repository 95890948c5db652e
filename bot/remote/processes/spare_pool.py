"""The processes that this machine has started for rooms, some of them loaded and waiting.

Loading the models takes seconds. A room that is wanted, or has lost its process, gets one that waits; the next one is
loaded once the room has had time to begin, because loading takes the processor from it.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

from bot.errors import BotError, SetupError
from bot.remote.processes.room_child import NOT_STARTED, RoomChild
from voice.cancellation import fail_if_cancelled_inside
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Sequence

    from bot.clock import Clock

log = structlog.get_logger()

# The room is in its channel by then.
SPARE_AFTER_S = 10.0
# Nobody waits for it. To end a process that loads slowly because the machine is busy would make the machine busier.
LOAD_WITHIN_S = 180.0
# After a process that ended before it was loaded; doubled up to the longest.
FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 300.0

ChildT = TypeVar("ChildT", bound=RoomChild)


class SparePool(Generic[ChildT]):
    """`command`: starts a process; the number of its run is added. `make`: returns what a started process is here.
    `most`: how many there are at once; None: any number. `waiting`: how many of them wait for a room. `stream`: what
    standard input and output of a process are.

    *Ownership*: who runs `keep` owns its task; `kill_all` ends every process.
    """

    def __init__(
        self,
        command: Callable[[str], Sequence[str]],
        make: Callable[[str, Process], ChildT],
        clock: Clock,
        *,
        most: int | None = None,
        waiting: int = 1,
        stream: int | None = None,
    ) -> None:
        self._command = command
        self._make = make
        self._clock = clock
        self._most = most
        self._waiting = waiting
        self._stream = stream
        self._known: dict[str, ChildT] = {}
        # Those that no room has taken, by run; each is set when a room takes it.
        self._spares: dict[str, asyncio.Event] = {}
        # One after the other: processes that load together delay each other, and those with rooms.
        self._loading = asyncio.Lock()
        self._forgotten = asyncio.Event()

    @property
    def known(self) -> list[ChildT]:
        """Return all processes, oldest first."""
        return list(self._known.values())

    @property
    def spares(self) -> list[ChildT]:
        """Return the processes that wait for a room, or are being loaded, oldest first."""
        return [process for process in self.known if process.run_id in self._spares and process.is_alive]

    def find(self, run_id: str) -> ChildT | None:
        """Return the process of a run; None: it was not started here, or is forgotten."""
        return self._known.get(run_id)

    def take(self, run_id: str) -> bool:
        """Return whether the process of this run waited; a room has it from now on."""
        taken = self._spares.pop(run_id, None)
        if taken is not None:
            taken.set()
        return taken is not None

    async def start(self) -> ChildT:
        """Start one more process. Raises `SetupError`."""
        run_id = secrets.token_hex(8)
        try:
            child = await asyncio.create_subprocess_exec(
                *self._command(run_id),
                stdin=asyncio.subprocess.DEVNULL if self._stream is None else self._stream,
                stdout=self._stream,
                start_new_session=True,
            )
        except OSError as error:
            raise SetupError(NOT_STARTED) from error
        process = self._known[run_id] = self._make(run_id, child)
        log.info("room_process_started", run_id=run_id, pid=child.pid)
        return process

    def forget(self, process: ChildT) -> None:
        """Forget a process that has ended."""
        self._known.pop(process.run_id, None)
        self._forgotten.set()

    async def kill_all(self) -> None:
        """End every process at once."""
        await asyncio.gather(*(process.kill() for process in self.known))

    async def keep(self) -> None:
        """Have `waiting` processes loaded and waiting, until this is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._waiting):
                tasks.create_task(fail_if_cancelled_inside(self._keep_one), name=f"spare-room-{number + 1}")

    async def _keep_one(self) -> None:
        failures = 0
        while True:
            taken = asyncio.Event()
            spare: ChildT | None = None
            try:
                async with self._loading:
                    await self._until_there_is_room()
                    spare = await self.start()
                    self._spares[spare.run_id] = taken
                    await spare.loaded(LOAD_WITHIN_S)
                failures = 0
                await self._until_taken(spare, taken)
                wait_s = SPARE_AFTER_S
            except BotError as error:
                failures += 1
                wait_s = retry_pause_s(failures, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)
                log.warning("no_spare_room_process", problem=error, retry_s=wait_s)
            if spare is not None and self._spares.pop(spare.run_id, None) is not None:
                # Nobody has taken it, and it is of no use any more.
                await spare.kill()
                self.forget(spare)
            await self._clock.sleep(wait_s)

    async def _until_there_is_room(self) -> None:
        while self._most is not None and len(self._known) >= self._most:
            self._forgotten.clear()
            await self._forgotten.wait()

    async def _until_taken(self, spare: ChildT, taken: asyncio.Event) -> None:
        """Return once a room has taken the process that waits, or it is lost."""
        taking = asyncio.create_task(taken.wait(), name="spare-room-taken")
        lost = asyncio.create_task(spare.lost(), name="spare-room-lost")
        try:
            await asyncio.wait({taking, lost}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            taking.cancel()
            lost.cancel()
