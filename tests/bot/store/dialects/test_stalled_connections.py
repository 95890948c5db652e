"""A disk that does not answer holds a thread for ever, and nobody who waits for the database."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from bot.store.database import open_database
from bot.store.dialects import sqlite
from bot.store.dialects.sqlite import SqliteDialect
from bot.store.dialects.stalled_connections import MOST_LEFT
from compaction.errors import StoreError
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from bot.store.dialects.stalled_connections import StalledConnections

SOON_S = 0.05


@pytest.fixture(autouse=True)
def _not_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WAIT_S", 0.0)


class Disk:
    """A disk that does not answer before `comes_back`."""

    def __init__(self) -> None:
        self._answers = threading.Event()
        self.was_asked = threading.Event()
        self.asked = 0

    def comes_back(self) -> None:
        """Answer all that was asked."""
        self._answers.set()

    async def read(self, transaction: AbstractAsyncContextManager[AsyncConnection]) -> None:
        """Ask the disk for something in a transaction."""
        async with transaction as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            await driver.create_function("ask_disk", 0, self._ask)
            await connection.execute(text("SELECT ask_disk()"))

    def _ask(self) -> int:
        self.asked += 1
        self.was_asked.set()
        self._answers.wait(PATIENCE_S)
        return 0


@contextmanager
def hanging_disk() -> Iterator[Disk]:
    """Yield a disk that hangs for the block."""
    disk = Disk()
    try:
        yield disk
    finally:
        disk.comes_back()


async def give_up(disk: Disk, transaction: AbstractAsyncContextManager[AsyncConnection]) -> None:
    """Ask the disk, and let the time for the answer be over once it was asked."""
    disk.was_asked.clear()

    async def ask() -> None:
        async with limit:
            await disk.read(transaction)

    limit = asyncio.timeout(None)
    waiting = asyncio.create_task(ask())
    assert await asyncio.to_thread(disk.was_asked.wait, PATIENCE_S)
    limit.reschedule(asyncio.get_running_loop().time())
    assert (await asyncio.wait({waiting}, timeout=PATIENCE_S))[0], "it waits for ever"
    with pytest.raises(TimeoutError):
        await waiting


def stalled(database: Database) -> StalledConnections:
    assert isinstance(database.dialect, SqliteDialect)
    return database.dialect.stalled


@pytest.mark.asyncio
async def test_a_transaction_ends_with_its_time_limit_although_its_thread_hangs(tmp_path: Path) -> None:
    """So whoever stores something is told. The next one may write once the disk is back."""
    async with open_database(tmp_path / "roomtone.db", busy_timeout_s=SOON_S) as database:
        with hanging_disk() as disk:
            await give_up(disk, database.writing())
            assert stalled(database).count == 1
        await asyncio.wait(stalled(database)._left, timeout=PATIENCE_S)
        assert stalled(database).count == 0
        async with database.writing() as connection:
            await connection.execute(text("CREATE TABLE stored (word)"))


@pytest.mark.asyncio
async def test_a_disk_that_hangs_does_not_get_more_and_more_threads(tmp_path: Path) -> None:
    """After three everybody is told at once to look at it, without another thread, until one comes back."""
    async with open_database(tmp_path / "roomtone.db", busy_timeout_s=SOON_S) as database:
        with hanging_disk() as disk:
            for _ in range(MOST_LEFT):
                await give_up(disk, database.reading())
            assert stalled(database).count == MOST_LEFT
            with pytest.raises(StoreError, match=r"did not answer in time\. The machine's disk may be"):
                await disk.read(database.reading())
            assert disk.asked == MOST_LEFT
        await asyncio.wait(stalled(database)._left, timeout=PATIENCE_S)
        async with database.reading() as connection:
            assert (await connection.execute(text("SELECT 1"))).scalar_one() == 1


@pytest.mark.asyncio
async def test_a_cancelled_statement_whose_thread_answers_leaves_none_behind(tmp_path: Path) -> None:
    """Its transaction is over, so that the next one may write."""
    async with open_database(tmp_path / "roomtone.db", busy_timeout_s=PATIENCE_S) as database:
        with hanging_disk() as disk:
            writing = asyncio.create_task(disk.read(database.writing()))
            assert await asyncio.to_thread(disk.was_asked.wait, PATIENCE_S)
            writing.cancel()
            disk.comes_back()
            await asyncio.wait({writing})
            assert (writing.cancelled(), stalled(database).count) == (True, 0)
            async with database.writing() as connection:
                await connection.execute(text("CREATE TABLE stored (word)"))
