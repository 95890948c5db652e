"""Who fences rooms off, and who may begin them, when two gateway processes believe that they serve a server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from bot.remote.gateway_side.room_fences import RoomFences
from bot.store.claims import claim_room, newest_claim
from bot.store.database import open_database
from compaction.errors import StaleOwnerError, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bot.store.database import Database


class FakeLock:
    """The lock of a gateway process. `answers`: cleared, the database says nothing. `error`: why it cannot be asked."""

    def __init__(self) -> None:
        self.has_rival = False
        self.error: Exception | None = None
        self.answers = asyncio.Event()
        self.answers.set()

    async def look(self) -> bool:
        """Return what the test says."""
        await self.answers.wait()
        if self.error is not None:
            raise self.error
        return self.has_rival


@asynccontextmanager
async def a_claimed_room(folder: Path) -> AsyncIterator[tuple[Database, FakeLock, RoomFences]]:
    """Open a database in which a server has its first claim."""
    async with open_database(folder / "rooms.db") as database:
        async with database.writing() as connection:
            await claim_room(connection, 10)
        lock = FakeLock()
        yield database, lock, RoomFences(database, lock)


@pytest.mark.asyncio
async def test_a_lost_room_is_fenced(tmp_path: Path) -> None:
    """Its claim is not the newest one any more, and the next room is told which is."""
    async with a_claimed_room(tmp_path) as (_, _, fences):
        assert await fences.newest_claim(10) == 1
        await fences.fence(10)
        assert await fences.newest_claim(10) == 2


@pytest.mark.asyncio
async def test_a_gateway_process_that_was_frozen_leaves_its_rooms_to_the_next(tmp_path: Path) -> None:
    """All of its rooms are lost, because another one has taken them back with the claims that they have. So it neither
    makes them stale nor begins them anew.
    """
    async with a_claimed_room(tmp_path) as (database, lock, fences):
        lock.has_rival = True
        await fences.fence(10)
        assert await newest_claim(database, 10) == 1
        with pytest.raises(StaleOwnerError):
            await fences.newest_claim(10)


@pytest.mark.asyncio
async def test_a_database_that_says_nothing_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim is not known then, nor whether the last one was made stale, which the next room's process asks."""
    async with a_claimed_room(tmp_path) as (_, lock, fences):
        lock.answers.clear()
        with monkeypatch.context() as patch:
            patch.setattr("bot.remote.gateway_side.room_fences.FENCE_WITHIN_S", 0.0)
            await fences.fence(10)
            assert await fences.newest_claim(10) is None
        lock.answers.set()
        assert await fences.newest_claim(10) is None
        assert await fences.newest_claim(10) == 1


@pytest.mark.asyncio
async def test_a_database_that_refuses_stops_no_room(tmp_path: Path) -> None:
    """As one that says nothing."""
    async with a_claimed_room(tmp_path) as (_, lock, fences):
        lock.error = StoreError("The disk is full.")
        await fences.fence(10)
        assert await fences.newest_claim(10) is None
        lock.error = None
        assert await fences.newest_claim(10) is None
        assert await fences.newest_claim(10) == 1
