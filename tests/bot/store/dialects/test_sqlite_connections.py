"""The connections to a database file: how much of it each keeps in memory, and which one is used next."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from bot.store.dialects.sqlite import POOL_SIZE, SqliteDialect, open_plain

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncConnection

# Negative: KiB. SQLite's default is 2,000.
CACHE_SIZE = -512


async def driver_connection(connection: AsyncConnection) -> object:
    """Return the driver's own connection, which is the same each time that the pool gives it out."""
    return (await connection.get_raw_connection()).driver_connection


@pytest.mark.asyncio
async def test_each_connection_keeps_half_a_megabyte_of_the_file(tmp_path: Path) -> None:
    """However large the file becomes in a long evening, for what the pool opens and for the reader of searches."""
    path = tmp_path / "roomtone.db"
    dialect = SqliteDialect(path, synchronous="normal", busy_timeout_s=1.0)
    try:
        async with dialect.readers.connect() as connection:
            assert (await connection.execute(text("PRAGMA cache_size"))).scalar_one() == CACHE_SIZE
    finally:
        await dialect.aclose()
    with closing(open_plain(path, busy_timeout_s=1.0)) as plain:
        assert plain.execute("PRAGMA cache_size").fetchone() == (CACHE_SIZE,)


@pytest.mark.asyncio
async def test_one_after_the_other_all_use_the_same_connection(tmp_path: Path) -> None:
    """Also after a moment in which all were needed: the others keep nothing more then."""
    dialect = SqliteDialect(tmp_path / "roomtone.db", synchronous="normal", busy_timeout_s=1.0)
    try:
        everybody = asyncio.Barrier(POOL_SIZE)

        async def use_beside_others() -> object:
            async with dialect.readers.connect() as connection:
                await everybody.wait()
                return await driver_connection(connection)

        assert len(set(await asyncio.gather(*(use_beside_others() for _ in range(POOL_SIZE))))) == POOL_SIZE
        used = set()
        for _ in range(2 * POOL_SIZE):
            async with dialect.readers.connect() as connection:
                used.add(await driver_connection(connection))
        assert len(used) == 1
    finally:
        await dialect.aclose()
