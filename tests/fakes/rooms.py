"""Rooms that open at once and end when a test says so, and all rooms of a bot made of them."""

from __future__ import annotations

import asyncio
from typing import cast

from bot.channel.port import MembershipChange, RoomChannel
from bot.health import HealthFault
from bot.room.room import Room
from bot.room.rooms import Rooms
from bot.server_settings import ListenRequest, no_server_settings
from bot.texts.text import Text, verbatim
from compaction.errors import StoreError
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S


class FakeRoom:
    """A fake room that opens at once and ends or crashes when the test says so."""

    def __init__(
        self,
        channel: RoomChannel,
        listen: ListenRequest | None,
        *,
        fails_to_open: Exception | None = None,
        opens: bool = True,
    ) -> None:
        self.channel, self.listen = channel, listen
        self.opened = asyncio.Event()
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.moves: list[MembershipChange] = []
        self._fails_to_open = fails_to_open
        self._opens = opens
        self.found: list[HealthFault] = []
        self.ending: str | None = None
        self.left_session_open = False
        # Set it to let the room take its time to end.
        self.stored = asyncio.Event()
        self.stored.set()

    @property
    def as_room(self) -> Room:
        """Return itself, as the rooms know it."""
        return cast("Room", self)

    async def run(self) -> str:
        """Open, then wait for the end."""
        if self._fails_to_open:
            raise self._fails_to_open
        if self._opens:
            self.opened.set()
        reason = await self.end
        await self.stored.wait()
        return reason

    def is_busy(self) -> bool:
        """Return False: nobody speaks."""
        return False

    def close(self, reason: str) -> None:
        """End with a reason."""
        self.ending = self.ending or reason
        if not self.end.done():
            self.end.set_result(reason)

    def on_membership(self, change: MembershipChange) -> None:
        """Keep the change."""
        self.moves.append(change)

    def end_by_itself(self, reason: str) -> None:
        """Begin to end for a reason of its own; `close` completes it."""
        self.ending = reason

    def faults(self) -> list[HealthFault]:
        """Return what the test says."""
        return self.found

    def status(self) -> Text:
        """Return the name of the channel in a sentence."""
        return verbatim(f"I am in {self.channel.name}.")


class StateHouse:
    """A bot's rooms, its clock, and every room that it made."""

    def __init__(self) -> None:
        self.rooms: list[FakeRoom] = []
        self.clock = FakeClock()
        self.fails_to_open: Exception | None = None
        self.opens = True
        self.servers = no_server_settings()
        self.listens: list[ListenRequest | None] = []
        # Where rooms have left sessions open that were ended.
        self.sessions_ended: list[RoomChannel] = []
        # Set it, and the database takes no ending. Each try is counted.
        self.database_away: StoreError | None = None
        self.endings_tried = 0
        self.running = Rooms(self.make, clock=self.clock, servers=self.servers)

    async def until_no_visit(self) -> None:
        """Wait until the bot is coming nowhere by itself any more."""
        async with asyncio.timeout(PATIENCE_S):
            while visits := [task for task in asyncio.all_tasks() if task.get_name().startswith("visit-")]:
                await asyncio.wait(visits)

    def make(self, channel: RoomChannel, listen: ListenRequest | None) -> Room:
        """Return a new room, and remember it."""
        self.listens.append(listen)
        self.rooms.append(FakeRoom(channel, listen, fails_to_open=self.fails_to_open, opens=self.opens))
        return self.rooms[-1].as_room

    async def end_session(self, channel: RoomChannel) -> None:
        """End what a room in `channel` has left open, unless the test says that the database is away."""
        self.endings_tried += 1
        if self.database_away is not None:
            raise self.database_away
        self.sessions_ended.append(channel)
