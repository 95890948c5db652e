"""The actor of one room worker. Ray places it, and starts it anew on another machine when its own is lost.

It does nothing but keep the worker's process (`room_worker`). Ray ends it with itself; the process goes on, and the
actor that comes to its machine next takes it over.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from bot.clock import SystemClock
from bot.cluster.address import node_folder
from bot.cluster.room_worker import RoomWorker
from bot.cluster.worker_folder import OfferedProcesses, worker_folder
from bot.folder_lock import FolderInUseError

if TYPE_CHECKING:
    from bot.cluster.room_offer import RoomOffer

log = structlog.get_logger()

_KEEPER_EVERY_S: Final = 1.0
# What Ray sees of an actor whose work has failed.
_FAILED: Final = 1


# Without slots: see `bot.cluster.transcription.PooledUtterance`.
@dataclass(frozen=True)
class WorkerReport:
    """What a worker tells of itself. `host`: its machine's name. `process`: the one that offers rooms; None: it starts,
    or has failed with `problem`. With a process, `problem` is the last warning in what it says now, which may be over.
    """

    host: str
    offer: RoomOffer
    process: int | None
    offered: OfferedProcesses
    problem: str


class WorkerActor:
    """What Ray runs, in an event loop. `name`: the worker's. `offer`: what it offers."""

    def __init__(self, name: str, offer: RoomOffer) -> None:
        self._offer = offer
        self._folder = worker_folder(node_folder(Path.cwd()), name)
        self._worker = RoomWorker(self._folder, offer.command(name), SystemClock())
        self._keeping = asyncio.get_running_loop().create_task(self._keep(), name="room-worker")
        self._keeping.add_done_callback(self._on_kept)

    async def report(self) -> WorkerReport:
        """Return how the worker is."""
        process = self._folder.process
        problem = self._folder.last_words() if process is None else self._folder.last_warning()
        return WorkerReport(os.uname().nodename, self._offer, process, self._folder.read_processes(), problem)

    async def leave(self) -> None:
        """Hand the rooms over; once the worker's process has ended, end this one for good."""
        from ray.actor import exit_actor

        self._keeping.cancel()
        with suppress(asyncio.CancelledError):
            await self._keeping
        await self._worker.hand_over()
        exit_actor()  # type: ignore[no-untyped-call]

    async def _keep(self) -> None:
        while True:
            # Another actor of this name on this machine is about to end.
            with suppress(FolderInUseError), self._folder.keeping():
                await self._worker.keep()
            await asyncio.sleep(_KEEPER_EVERY_S)

    def _on_kept(self, keeping: asyncio.Task[None]) -> None:
        """End this process, so that Ray starts the actor anew, if its work has failed."""
        if not keeping.cancelled():
            log.error("room_worker_failed", problem=keeping.exception())
            os._exit(_FAILED)
