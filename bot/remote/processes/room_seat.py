"""The seats of a process that runs rooms, as the gateway process has them. A seat is a link that waits for one room.

A process opens one link for each room that it can run, and an emergency seat more: for a room that has lost its process
while none waits, because loading one takes seconds. A room takes one of them, and when it has ended the process opens
another one for the next room. So rooms in one process share what is loaded, and nothing of the way to the gateway
process: one of them can be given up while the others go on.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.errors import SetupError
from bot.remote.messages.room_messages import NoMoreRooms
from bot.remote.processes.room_child import END_WITHIN_S, NOT_STARTED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.remote.link.message_link import MessageLink
    from bot.texts.text import Text

log = structlog.get_logger()

# A process that is loaded opens all its links at once.
SEAT_WITHIN_S = 5.0


class Seats:
    """The seats of one process."""

    def __init__(self) -> None:
        # How many rooms the process has, or will have once it is loaded. See `reserve`.
        self.rooms = 0
        # Of the rooms that were given up here, which may still end: their next process is another one.
        self.given_up: set[int] = set()
        self._waiting: list[MessageLink] = []
        self._emergency: list[MessageLink] = []
        self._open: set[MessageLink] = set()
        # Called when a link that waits is lost.
        self.on_lost: Callable[[], None] | None = None
        self._is_dismissed = False
        # Rooms that have chosen the process and have no link yet.
        self._wanted = 0
        self._came = asyncio.Event()

    @property
    def opened(self) -> int:
        """Return how many links are open."""
        return len(self._open)

    @property
    def free(self) -> int:
        """Return how many rooms the process can take now."""
        return len(self._waiting) - self._wanted

    @property
    def emergency(self) -> int:
        """Return how many rooms it can take besides that have lost their process."""
        return len(self._emergency)

    def add(self, link: MessageLink, *, emergency: bool = False) -> None:
        """Take a link that waits for a room. `emergency`: for one that has lost its process."""
        self._open.add(link)
        (self._emergency if emergency else self._waiting).append(link)
        link.on_closed(lambda: self._remove(link))
        self._came.set()

    def reserve(self, *, emergency: bool = False) -> None:
        """Count a room, before it has its link by `take` or `taken_back`: no other one gets its seat meanwhile.

        `emergency`: it takes an emergency seat, of which there must be one.
        """
        self.rooms += 1
        self._wanted += 1
        if emergency:
            self._waiting.append(self._emergency.pop(0))

    def taken_back(self, link: MessageLink) -> MessageLink:
        """Take a link that has its room already, and return it."""
        self._wanted -= 1
        self._open.add(link)
        link.on_closed(lambda: self._remove(link))
        return link

    def _remove(self, link: MessageLink) -> None:
        self._open.discard(link)
        for waiting in (self._waiting, self._emergency):
            if link in waiting:
                waiting.remove(link)
                if self.on_lost is not None and not self._is_dismissed:
                    self.on_lost()

    async def take(self, loaded: Awaitable[None]) -> MessageLink:
        """Return a link for a room, once the process is `loaded`. Raises `SetupError` if none comes, and what that
        raises.
        """
        try:
            await loaded
            async with asyncio.timeout(SEAT_WITHIN_S):
                while not self._waiting:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError as error:
            raise SetupError(NOT_STARTED) from error
        finally:
            self._wanted -= 1
        return self._waiting.pop(0)

    def dismiss(self) -> None:
        """Tell the seats that wait that the process gets no room any more."""
        self._is_dismissed = True
        for link in (*self._waiting, *self._emergency):
            link.tell(NoMoreRooms())


class SeatedProcess(Protocol):
    """A process with seats."""

    @property
    def machine(self) -> str:
        """Return the name of its machine; empty for the gateway process's own."""

    @property
    def run_id(self) -> str:
        """Return the number of its run."""

    @property
    def seats(self) -> Seats:
        """Return its seats."""

    @property
    def is_alive(self) -> bool:
        """Return whether it may still run rooms; nobody knows that for certain of one of another machine."""

    async def why_lost(self) -> Text:
        """Return why the link of a room has ended before the room."""

    async def kill(self) -> None:
        """End it at once, with all its rooms, if it runs here."""


class RoomSeat:
    """The seat that a room has. `guild_id`: its server."""

    def __init__(self, process: SeatedProcess, link: MessageLink, guild_id: int) -> None:
        self.link = link
        self._process = process
        self._guild_id = guild_id
        self._closed = asyncio.Event()
        # Whether the room has not begun there, for a reason outside of the process.
        self.is_handed_back = False
        link.on_closed(self._closed.set)

    @property
    def machine(self) -> str:
        """Return the name of the process's machine."""
        return self._process.machine

    @property
    def run_id(self) -> str:
        """Return the number of the process's run."""
        return self._process.run_id

    @property
    def is_open(self) -> bool:
        """Return whether the room's process is there and answers."""
        return self.link.is_open

    @property
    def may_go_on(self) -> bool:
        """Return whether the room may still do something there, though nobody hears of it."""
        return self._process.is_alive

    async def lost(self) -> Text:
        """Wait for the end of the room's link, and return why it has ended."""
        await self._closed.wait()
        return await self._process.why_lost()

    async def give_up(self) -> None:
        """End the room at once, so that it can be started again in another process.

        A process that has no other room and runs here is killed. Otherwise only the room's link is closed: the room is
        refused when it comes back, and ends. What it does until then must be made stale.
        """
        seats = self._process.seats
        log.info("room_given_up", run_id=self.run_id, machine=self.machine, other_rooms=seats.rooms - 1)
        seats.given_up.add(self._guild_id)
        self.link.close()
        await self.kill_if_alone()
        await self._closed.wait()

    def hand_back(self) -> None:
        """Let the process, which has not taken the room, wait again: it opens another link, which has no trace of this
        room.
        """
        log.info("room_seat_handed_back", run_id=self.run_id, machine=self.machine)
        self.is_handed_back = True
        self.link.close()

    async def kill_if_alone(self) -> None:
        """End the process at once if it runs here and has no other room: nobody waits for it to end by itself."""
        if self._process.seats.rooms == 1:
            await self._process.kill()

    async def end(self) -> None:
        """Wait for the end of the link, which is due, and close it if it does not come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_WITHIN_S):
                await self._closed.wait()
        self.link.close()
        await self._closed.wait()
