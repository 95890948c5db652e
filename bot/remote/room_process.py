"""The processes that run rooms, as the gateway process has them: its own children, and those of other machines."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from bot.errors import SetupError
from bot.remote.room_child import END_WITHIN_S, RoomChild
from bot.texts.text import Text

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from bot.remote.link import MessageLink

log = structlog.get_logger()

# The machine of the gateway process, which needs no name.
THIS_MACHINE: Final = ""

ONE_LINK = Text("A process of a room opens one link.")
LOST = Text("The process that ran this room on another machine is not there any more.")


class RoomProcess(Protocol):
    """A process that runs one room, or waits for one."""

    @property
    def machine(self) -> str:
        """Return the name of its machine; empty for the gateway process's own."""

    @property
    def run_id(self) -> str:
        """Return the number of its run."""

    @property
    def link(self) -> MessageLink:
        """Return the link to the process. It is loaded by then."""

    @property
    def is_alive(self) -> bool:
        """Return whether it may still run its room."""

    async def loaded(self, within_s: float) -> None:
        """Wait until it can run a room. Raises `SetupError` if it ends before that, or takes longer."""

    async def lost(self) -> Text:
        """Wait until the process is gone or does not answer, and return which."""

    async def kill(self) -> None:
        """End it at once, or give it up. Its room can be started again afterwards."""

    async def end(self) -> None:
        """Wait for its end, which is due, and kill it if it does not come."""


class LinkedChild(RoomChild):
    """A child of the gateway process. Implements `RoomProcess`. It is loaded once it has opened its link."""

    machine = THIS_MACHINE

    def __init__(self, run_id: str, process: Process) -> None:
        super().__init__(run_id, process)
        self._link: MessageLink | None = None

    @property
    def link(self) -> MessageLink:
        """Return the link to the process. It is loaded by then."""
        assert self._link is not None, "it is loaded"
        return self._link

    def on_link(self, link: MessageLink) -> None:
        """Take the link that the process has opened. Raises `BotError` for a second one."""
        if self._link is not None:
            raise SetupError(ONE_LINK)
        self._link = link
        link.on_closed(self.on_silent)
        self.on_loaded()


class DistantProcess:
    """A process of another machine. Implements `RoomProcess`.

    Nobody can end it from here: it is given up with its link. Its room is then claimed by the next process, so what it
    still does is neither stored nor spoken; and it hands its room over once it is refused, or has no link for a minute.
    """

    def __init__(self, machine: str, run_id: str, link: MessageLink) -> None:
        self.machine = machine
        self.run_id = run_id
        self.link = link
        self._closed = asyncio.Event()
        link.on_closed(self._closed.set)

    @property
    def is_alive(self) -> bool:
        """Return whether its link is open."""
        return self.link.is_open

    async def loaded(self, within_s: float) -> None:
        """Return: a process of another machine comes when it is loaded."""

    async def lost(self) -> Text:
        """Wait for the end of its link."""
        await self._closed.wait()
        log.info("distant_room_process_gone", run_id=self.run_id, machine=self.machine)
        return LOST

    async def kill(self) -> None:
        """Close its link."""
        self.link.close()
        await self._closed.wait()

    async def end(self) -> None:
        """Wait until it has closed its link, and close it otherwise."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_WITHIN_S):
                await self._closed.wait()
        await self.kill()
