"""The shipped migrations are frozen, run once, and create the tables that the code uses."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, inspect

from bot.store.database import open_database
from bot.store.migrations import MIGRATIONS, migrate
from bot.store.tables import metadata
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from compaction.model import SessionId
from tests.compaction.turn_store_contract import fill
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path


def shape(path: Path) -> dict[str, object]:
    """Return the tables of a database with their columns, keys and indexes."""
    engine = create_engine(f"sqlite:///{path}")
    try:
        seen = inspect(engine)
        return {
            name: (
                [(column["name"], str(column["type"]), column["nullable"]) for column in seen.get_columns(name)],
                seen.get_pk_constraint(name)["constrained_columns"],
                [
                    (key["constrained_columns"], key["referred_table"], key["options"])
                    for key in seen.get_foreign_keys(name)
                ],
                sorted(
                    (str(index["name"]), index["column_names"], index["unique"]) for index in seen.get_indexes(name)
                ),
            )
            for name in seen.get_table_names()
        }
    finally:
        engine.dispose()


# The first 16 hex digits of the SHA-256 of each shipped step; its statements are joined by NUL.
SHIPPED_STEPS = (
    "f63cffe96df50e8e",
    "f903029c1840670b",
    "a37780f10eb93088",
    "1107d0942c495a28",
    "886e95500190bf99",
    "fc053937154c1f7e",
    "9d4aa29609f20e56",
    "b46e6899e305cc0f",
    "2a30a19f7759efb1",
    "cae04deff49eca7f",
    "6aeb9e1acc4d8ff9",
    "5f8e871b639777aa",
    "b4f500eeb1e51530",
)


def version_of(path: Path) -> int:
    """Return the schema version of a database."""
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def test_shipped_steps_are_frozen() -> None:
    """No shipped step has changed by a single character. A new step adds its digest here."""
    digests = [hashlib.sha256("\0".join(step).encode()).hexdigest()[:16] for step in MIGRATIONS]
    assert digests == list(SHIPPED_STEPS)


@pytest.mark.asyncio
async def test_migrations_make_the_tables_the_code_asks(tmp_path: Path) -> None:
    """The frozen statements create the same tables that `metadata` describes."""
    async with open_database(tmp_path / "migrated.db"):
        pass
    engine = create_engine(f"sqlite:///{tmp_path / 'described.db'}")
    metadata.create_all(engine)
    engine.dispose()
    assert shape(tmp_path / "migrated.db") == shape(tmp_path / "described.db")
    assert version_of(tmp_path / "migrated.db") == len(MIGRATIONS)


@pytest.mark.asyncio
async def test_a_newer_database_is_left_alone(tmp_path: Path) -> None:
    """A database of a later version is refused with a plain sentence and stays unchanged."""
    path = tmp_path / "a.db"
    async with open_database(path):
        pass
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 4}")
    connection.close()
    expected = f"of version {len(MIGRATIONS) + 4}, and this Roomtone knows only {len(MIGRATIONS)}: a newer one wrote it"
    with pytest.raises(StoreError, match=expected):
        async with open_database(path):
            pass
    assert version_of(path) == len(MIGRATIONS) + 4


@pytest.mark.asyncio
async def test_an_older_database_is_brought_up_with_its_rows(tmp_path: Path) -> None:
    """A step that is added later runs once and keeps the existing rows."""
    step = ("ALTER TABLE turns ADD COLUMN mood VARCHAR NOT NULL DEFAULT 'calm'",)
    async with open_database(tmp_path / "a.db") as database:
        await fill(SqlTurnStore(database, FakeClock()), 3, session_id=SessionId("evening"))
        for _ in range(2):
            async with database.writing() as connection:
                assert await migrate(connection, steps=(*MIGRATIONS, step)) == len(MIGRATIONS) + 1
        async with database.reading() as connection:
            found = await connection.exec_driver_sql("SELECT seq, mood FROM turns ORDER BY seq")
            assert [tuple(row) for row in found] == [(0, "calm"), (1, "calm"), (2, "calm")]


@pytest.mark.asyncio
async def test_a_step_that_fails_leaves_the_old_version(tmp_path: Path) -> None:
    """If a step fails, its earlier statements are undone and the version stays."""
    broken = ("CREATE TABLE extra (id INTEGER)", "ALTER TABLE absent ADD COLUMN x INTEGER")
    async with open_database(tmp_path / "a.db") as database:
        with pytest.raises(StoreError, match="no such table: absent"):
            async with database.writing() as connection:
                await migrate(connection, steps=(*MIGRATIONS, broken))
    assert version_of(tmp_path / "a.db") == len(MIGRATIONS)
    assert "extra" not in shape(tmp_path / "a.db")
