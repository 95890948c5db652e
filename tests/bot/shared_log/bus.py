"""Notifications in memory, with which a shared log and a tail reach each other."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.shards import Shards


class Bus:
    """All connections of one database. `serving`: what the database says of its processes."""

    def __init__(self, *serving: Shards) -> None:
        self.shards = serving
        self.is_away = False
        # By the database's clock, which shows another time each time.
        self.time = 1_000.0
        self.connections: list[BusConnection] = []
        self._opened = asyncio.Event()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[BusConnection]:
        """Yield a connection. Implements what `SharedLog` and `OtherLogs` connect with."""
        if self.is_away:
            raise StoreError("The database is away.")
        connection = BusConnection(self)
        self.connections.append(connection)
        self._opened.set()
        try:
            yield connection
        finally:
            self.connections.remove(connection)

    async def until_connected(self, count: int) -> None:
        """Wait until so many connections are open."""
        while len(self.connections) < count:
            self._opened.clear()
            await self._opened.wait()


class BusConnection:
    """One connection. Implements `bot.store.dialects.port.Notifications`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._channels: set[str] = set()
        self._texts: list[str] = []
        self._come = asyncio.Event()

    async def serving(self) -> tuple[Shards, ...]:
        return self._bus.shards

    async def listen(self, channel: str) -> None:
        self._channels.add(channel)

    async def tell(self, channel: str, text: str) -> None:
        for each in self._bus.connections:
            each.take(channel, text)

    async def time(self) -> float:
        self._bus.time += 0.001
        return self._bus.time

    async def heard(self, within_s: float) -> list[str]:
        """Wait until something comes: what would end the wait without it are the tests' own clocks."""
        await self._come.wait()
        if self._bus.is_away:
            raise StoreError("The database is away.")
        texts, self._texts = self._texts, []
        self._come.clear()
        return texts

    def take(self, channel: str, text: str) -> None:
        """Take a text if it is for this connection."""
        if channel in self._channels:
            self._texts.append(text)
            self._come.set()

    def poll(self) -> None:
        """End a wait, with what has come."""
        self._come.set()
