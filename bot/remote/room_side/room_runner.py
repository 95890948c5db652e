"""Runs the rooms of a process: each in a seat with a link of its own, which then waits for the next room.

The gateway process decides when this process has had its last room, and tells the seats that wait.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from bot.errors import BotError, first_cause
from bot.remote.room_side.room_host import NOT_WANTED

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from bot.health import Health
    from bot.remote.room_side.room_host import RoomHost

log = structlog.get_logger()


class RoomRunner:
    """Runs up to `count` rooms at once, and one more that has lost its process. `open_seat`: yields what runs one, with
    its link open; is told whether the seat is the one for an emergency. `on_room`: is called whenever there is a room.
    """

    def __init__(
        self,
        open_seat: Callable[[bool], AbstractAsyncContextManager[RoomHost]],
        count: int,
        *,
        health: Health,
        on_loaded: Callable[[], None] = lambda: None,
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        self._open_seat = open_seat
        self._count = count
        self._health = health
        self._on_loaded = on_loaded
        self._on_room = on_room
        self._opened = 0
        # That run now.
        self._rooms = 0

    async def run(self, stop: asyncio.Event) -> str:
        """Run rooms until no seat is wanted any more. `stop`: hand all of them over. Return why one has ended.

        Raises `BotError` if a seat cannot be opened at the beginning. *Ownership*: one task for each seat.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                serving = [
                    tasks.create_task(self._serve(stop, emergency=number == self._count), name=f"room-seat-{number}")
                    for number in range(self._count + 1)
                ]
        except ExceptionGroup as errors:
            raise first_cause(errors) from errors
        return next((reason for task in serving if (reason := task.result()) != NOT_WANTED), NOT_WANTED)

    async def _serve(self, stop: asyncio.Event, *, emergency: bool) -> str:
        """Run one room after the other in one seat, and return why the last one has ended."""
        async with self._open_seat(emergency) as host:
            self._seat_opened()
            last = await self._host(host, stop)
        # Without another room this process has had its last one.
        while self._rooms and not stop.is_set() and not self._health.needs_restart:
            try:
                async with self._open_seat(emergency) as host:
                    reason = await self._host(host, stop)
            except BotError as error:
                log.warning("room_seat_not_opened", problem=error)
                break
            if reason == NOT_WANTED:
                break
            last = reason
        return last

    async def _host(self, host: RoomHost, stop: asyncio.Event) -> str:
        has_room = False

        def on_room() -> None:
            nonlocal has_room
            has_room = True
            self._rooms += 1
            self._on_room()

        try:
            return await host.run(stop, on_room)
        finally:
            self._rooms -= has_room

    def _seat_opened(self) -> None:
        self._opened += 1
        if self._opened == self._count + 1:
            self._on_loaded()
