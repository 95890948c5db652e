"""The processes that this machine offers to the gateway process of another one, for its rooms.

Each process opens its own link there. Here it only says when it is loaded and when it has got a room, so that the next
one is loaded; and it hands its room over once this process is gone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from bot.background_task import background_task, logged_task
from bot.cluster.worker_folder import OfferedProcesses
from bot.remote.processes.room_child import RoomChild
from bot.remote.processes.spare_pool import SparePool

if TYPE_CHECKING:
    from asyncio import StreamReader
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Callable, Sequence

    from bot.clock import Clock

log = structlog.get_logger()

# The lines that a room's process writes to who has started it.
LOADED: Final = "loaded"
HAS_ROOM: Final = "has-room"
# Longer than a room's process takes at most before it ends itself.
HAND_OVER_WITHIN_S = 60.0


class RoomMachine:
    """Keeps `waiting` processes loaded for the next rooms, and has at most `most` of them. `command`: starts one; the
    number of its run is added. `tell`: gets how many processes there are whenever that changes; its `OSError` is
    logged.
    """

    def __init__(
        self,
        command: Callable[[str], Sequence[str]],
        clock: Clock,
        *,
        most: int,
        waiting: int = 1,
        tell: Callable[[OfferedProcesses], None] = lambda _: None,
    ) -> None:
        self._pool = SparePool(
            command, self._watched, clock, most=most, waiting=waiting, stream=asyncio.subprocess.PIPE
        )
        self._tell = tell
        # Whether that failed the last time, and was logged.
        self._untold = False
        self._watching: set[asyncio.Task[None]] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Offer processes until `stop` is set; then hand over every room, one after the other.

        *Cancellation*: kills the processes. The gateway process starts their rooms elsewhere.
        """
        keeping = asyncio.create_task(self._pool.keep(), name="room-spare")
        stopping = asyncio.create_task(stop.wait(), name="until-stopped")
        try:
            await asyncio.wait({keeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if keeping.done():
                keeping.result()
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await self._hand_over()
        finally:
            keeping.cancel()
            stopping.cancel()
            await self._pool.kill_all()
            await asyncio.gather(keeping, *self._watching, return_exceptions=True)

    async def _hand_over(self) -> None:
        """End the processes that wait, so that no room comes back here, and then each room's."""
        spares = self._pool.spares
        for process in sorted(self._pool.known, key=lambda process: process not in spares):
            if process.is_alive:
                log.info("room_process_hands_over", run_id=process.run_id, waits=process in spares)
                process.hand_over()
                await process.end(HAND_OVER_WITHIN_S)

    def _tell_processes(self) -> None:
        spares, known = self._pool.spares, [process for process in self._pool.known if process.is_alive]
        loaded = [process for process in known if process.is_loaded]
        waiting = sum(process in spares for process in loaded)
        try:
            self._tell(OfferedProcesses(len(loaded) - waiting, waiting, len(known) - len(loaded)))
        except OSError as error:
            # It is for people alone: the processes are offered by their links.
            if not self._untold:
                log.error(  # noqa: TRY400 - nothing here failed
                    "room_processes_not_told",
                    problem=error.strerror,
                    remedy="free some space on this machine; until then `roomtone cluster status` shows old numbers",
                )
            self._untold = True
        else:
            self._untold = False

    def _watched(self, run_id: str, process: Process) -> RoomChild:
        child = RoomChild(run_id, process)
        watching = logged_task(self._watch(child, process), name=f"room-process-{run_id}")
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)
        return child

    async def _watch(self, child: RoomChild, process: Process) -> None:
        """Take what a process says until it has ended."""
        self._tell_processes()
        try:
            async with background_task(self._hear(child, process), name=f"room-process-{child.run_id}-says"):
                await process.wait()
        finally:
            self._pool.forget(child)
            self._tell_processes()

    async def _hear(self, child: RoomChild, process: Process) -> None:
        assert process.stdout is not None, "a pipe"

        def warn() -> None:
            log.warning("room_process_line_skipped", run_id=child.run_id, detail="it is too long; the others are read")

        async for line in lines_of(process.stdout, warn):
            said = line.decode(errors="replace").strip()
            if said == LOADED:
                child.on_loaded()
                self._tell_processes()
            elif said == HAS_ROOM and self._pool.take(child.run_id):
                log.info("room_process_has_room", run_id=child.run_id)
                self._tell_processes()


async def lines_of(stream: StreamReader, on_long: Callable[[], None]) -> AsyncIterator[bytes]:
    """Yield the lines of `stream` until its end. Lines that are longer than its limit (64 KiB) are left out, whole.

    `on_long`: is called for the first of them; a library that writes such lines may write many.
    """
    is_long = was_long = False
    while True:
        try:
            line = await stream.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            # What has come of it; the rest comes with the next turns, at last the newline.
            await stream.readexactly(error.consumed)
            is_long = True
            continue
        except asyncio.IncompleteReadError as error:
            line = error.partial
        if is_long and not was_long:
            was_long = True
            on_long()
        if line and not is_long:
            yield line
        is_long = False
        if not line.endswith(b"\n"):
            return
