"""The check whether the database can be written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bot.store.database import open_database
from bot.store.write_check import check_writable
from compaction.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
async def test_a_database_that_takes_writes_is_left_as_it_is(tmp_path: Path) -> None:
    """The check finds nothing and changes nothing."""
    path = tmp_path / "roomtone.db"
    async with open_database(path) as database:
        with closing(sqlite3.connect(path)) as outside:
            before = outside.execute("PRAGMA data_version").fetchone()
            await check_writable(database)
            assert outside.execute("PRAGMA data_version").fetchone() == before


@pytest.mark.asyncio
async def test_a_database_that_somebody_holds_is_found_until_it_is_free(tmp_path: Path) -> None:
    """A lock that another process keeps is a `StoreError`; afterwards all is well."""
    path = tmp_path / "roomtone.db"
    async with open_database(path, busy_timeout_s=0.1) as database:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="locked"):
                await check_writable(database)
            other.execute("ROLLBACK")
        await check_writable(database)


@pytest.mark.asyncio
async def test_a_file_that_may_only_be_read_is_found(tmp_path: Path) -> None:
    """The check fails on a connection that may not write, as on a file system that was mounted read-only."""
    async with open_database(tmp_path / "roomtone.db") as database:
        async with database.reading() as connection:
            await connection.exec_driver_sql("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="cannot be written"):
            await check_writable(database)
