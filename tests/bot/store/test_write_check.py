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
async def test_a_file_that_may_only_be_read_is_found(tmp_path: Path) -> None:
    """The check fails on a connection that may not write, as on a file system that was mounted read-only."""
    async with open_database(tmp_path / "roomtone.db") as database:
        async with database.reading() as connection:
            await connection.exec_driver_sql("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="cannot be written"):
            await check_writable(database)
