"""The processes that run rooms, as the gateway process has them: its own children, and those that others started."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from bot.errors import SetupError
from bot.remote.processes.adoption import NOT_OURS
from bot.remote.processes.placement import THIS_MACHINE, ProcessLoad
from bot.remote.processes.room_child import ENDED, FROZEN, RoomChild
from bot.remote.processes.room_seat import Seats
from bot.texts.text import Text

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from bot.remote.link.message_link import MessageLink

log = structlog.get_logger()

ONE_LINK = Text("A process opens one link for each of its rooms, and one for an emergency.")
LOST = Text("The process that ran this room is not there any more.")
# A process that is killed loses its links first.
REAPED_WITHIN_S = 0.2


class LinkedChild(RoomChild):
    """A child of the gateway process. Implements `SeatedProcess`. It is loaded once it has opened a link.

    `most_rooms`: how many it can run.
    """

    machine = THIS_MACHINE

    def __init__(self, run_id: str, process: Process, *, most_rooms: int = 1) -> None:
        super().__init__(run_id, process)
        self.seats = Seats()
        self._most_rooms = most_rooms
        self._is_retired = False

    @property
    def load(self) -> ProcessLoad:
        """Return how many rooms it has and can take."""
        free = self._most_rooms - self.seats.rooms if self.is_loading else self.seats.free
        takes = self.is_alive and not self._is_retired
        return ProcessLoad(
            self.machine,
            self.seats.rooms,
            free if takes else 0,
            loaded=not self.is_loading,
            emergency=self.seats.emergency if takes else 0,
        )

    def on_link(self, link: MessageLink, *, emergency: bool = False) -> None:
        """Take a link that waits for a room; `emergency`: for one that has lost its process. Raises `SetupError` for
        one too many.
        """
        if self._is_retired:
            raise SetupError(NOT_OURS)
        if self.seats.opened > self._most_rooms:
            raise SetupError(ONE_LINK)
        self.seats.add(link, emergency=emergency)
        link.on_closed(self._on_closed)
        if not emergency:
            self.on_loaded()

    def _on_closed(self) -> None:
        if not self.seats.opened:
            self.on_silent()

    async def why_lost(self) -> Text:
        """Return whether it has ended or does not answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REAPED_WITHIN_S):
                await self.ended()
        return FROZEN if self.is_alive else ENDED

    async def retire(self) -> None:
        """Give it no room any more, and return when it has ended."""
        self._is_retired = True
        self.seats.dismiss()
        if self.is_loading:
            # It has nothing to end in order, and nobody could tell it to.
            await self.kill()
        await self.end()


class DistantProcess:
    """A process that this one has not started: of another machine, or of a gateway process before this one. Implements
    `SeatedProcess`.

    Nobody can end it from here: its rooms are given up with their links. Each is then claimed by its next process, so
    what it still does is neither stored nor spoken; and it hands over once it is refused, or has no link for a minute.
    """

    # For all that anybody here knows.
    is_alive = True

    def __init__(self, machine: str, run_id: str) -> None:
        self.machine = machine
        self.run_id = run_id
        self.seats = Seats()
        self._is_retired = False

    @property
    def load(self) -> ProcessLoad:
        """Return how many rooms it has and can take."""
        if self._is_retired:
            return ProcessLoad(self.machine, self.seats.rooms, 0)
        return ProcessLoad(self.machine, self.seats.rooms, self.seats.free, emergency=self.seats.emergency)

    def on_link(self, link: MessageLink, *, emergency: bool = False) -> None:
        """Take a link that waits for a room; `emergency`: for one that has lost its process."""
        self.seats.add(link, emergency=emergency)

    async def loaded(self, within_s: float) -> None:
        """Return: a process of another machine comes when it is loaded."""

    async def why_lost(self) -> Text:
        """Log that it is gone, which is all that is known here, and return the sentence that says so."""
        log.info("distant_room_process_gone", run_id=self.run_id, machine=self.machine)
        return LOST

    async def kill(self) -> None:
        """Do nothing: nobody here can."""

    async def retire(self) -> None:
        """Give it no room any more. It ends by itself."""
        self._is_retired = True
        self.seats.dismiss()
