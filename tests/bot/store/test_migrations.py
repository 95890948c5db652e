"""The shipped migrations are frozen, run once, and create the tables that the code uses."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, inspect

from bot.store.database import MIGRATION_S, TRANSACTION_GRACE_S, Database, open_database
from bot.store.migrations.upgrade import HEAD, VERSIONS, migrate
from bot.store.tables import metadata
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from compaction.model import SessionId
from tests.bot.store.old_schemas import BEFORE_ALEMBIC, STEPS
from tests.compaction.turn_store_contract import fill
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncConnection


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
            # The tables of the full-text index and of Alembic are not described.
            if not name.startswith(("passage_index", "passage_terms", "alembic"))
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
    "5b132585221c17b9",
    "2de8aaead306b080",
    "d5a20ad9d8379202",
    "8505cd0c742d6cef",
    "093c37528059165c",
    "077c529759f1d471",
    "a13417d4a4d537bf",
)


def versions_of(path: Path) -> tuple[str, int]:
    """Return the version of a database in Alembic's table, and in SQLite's own mark."""
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return str(version), int(connection.execute("PRAGMA user_version").fetchone()[0])


def write_step(folder: Path, *statements: str) -> Path:
    """Write a step that follows the newest one, and return its folder."""
    folder.mkdir()
    run = "\n    ".join(f"op.execute({each!r})" for each in statements)
    step = (
        f"from alembic import op\n\nrevision, down_revision = '9000', {HEAD!r}\n\ndef upgrade() -> None:\n    {run}\n"
    )
    (folder / "v9000_step.py").write_text(step, "utf-8")
    return folder


def test_shipped_steps_are_frozen() -> None:
    """No shipped step has changed by a single character. A new step adds its digest here."""
    digests = [hashlib.sha256("\0".join(step).encode()).hexdigest()[:16] for step in STEPS]
    assert digests == list(SHIPPED_STEPS)
    assert int(HEAD) == len(SHIPPED_STEPS)


def test_a_step_only_runs_its_statements() -> None:
    """The first steps have no code of their own that could change. No step leads back."""
    for path in sorted(VERSIONS.glob("v*.py")):
        text = path.read_text("utf-8")
        if int(path.name[1:5]) <= BEFORE_ALEMBIC:
            assert text.endswith("def upgrade() -> None:\n    run_on_sqlite(STATEMENTS)\n")
        assert "def downgrade" not in text


@pytest.mark.asyncio
async def test_migrations_make_the_tables_the_code_asks(tmp_path: Path) -> None:
    """The frozen statements create the same tables that `metadata` describes."""
    async with open_database(tmp_path / "migrated.db"):
        pass
    engine = create_engine(f"sqlite:///{tmp_path / 'described.db'}")
    metadata.create_all(engine)
    engine.dispose()
    assert shape(tmp_path / "migrated.db") == shape(tmp_path / "described.db")
    assert versions_of(tmp_path / "migrated.db") == (HEAD, int(HEAD))


@pytest.mark.asyncio
@pytest.mark.parametrize("adopted", [True, False], ids=["in Alembic's table", "in user_version alone"])
async def test_a_newer_database_is_left_alone(tmp_path: Path, adopted: bool) -> None:
    """A database of a later version is refused with a plain sentence and stays unchanged."""
    path = tmp_path / "a.db"
    async with open_database(path):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")
        connection.execute(
            "UPDATE alembic_version SET version_num = '0099'" if adopted else "DROP TABLE alembic_version"
        )
    before = path.read_bytes()
    expected = (
        rf"^The database is of version 99, and this Roomtone knows only {int(HEAD)}: a newer one wrote it\. Install"
    )
    with pytest.raises(StoreError, match=expected):
        async with open_database(path):
            pass
    assert path.read_bytes() == before


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["0016", "0099"])
async def test_a_process_of_another_version_leaves_a_database_that_the_bot_uses(tmp_path: Path, version: str) -> None:
    """A room's process must not migrate: an older and a newer database are refused with the remedy, unchanged."""
    path = tmp_path / "a.db"
    async with open_database(path), open_database(path, migrates=False):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", [version])
    before = path.read_bytes()
    expected = f"of version {int(version)}, and this Roomtone needs version {int(HEAD)}. Only the bot itself"
    with pytest.raises(StoreError, match=expected) as refused:
        async with open_database(path, migrates=False):
            pass
    assert "PostgreSQL" not in str(refused.value)
    assert path.read_bytes() == before


@pytest.mark.asyncio
async def test_an_older_database_is_brought_up_with_its_rows(tmp_path: Path) -> None:
    """A step that is added later runs once and keeps the existing rows."""
    added = "ALTER TABLE turns ADD COLUMN mood VARCHAR NOT NULL DEFAULT 'calm'"
    folder = write_step(tmp_path / "100% later", added)
    async with open_database(tmp_path / "a.db") as database:
        await fill(SqlTurnStore(database, FakeClock()), 3, session_id=SessionId("evening"))
        for _ in range(2):
            async with database.writing() as connection:
                await migrate(connection, folders=(VERSIONS, folder))
        async with database.reading() as connection:
            found = await connection.exec_driver_sql("SELECT seq, mood FROM turns ORDER BY seq")
            assert [tuple(row) for row in found] == [(0, "calm"), (1, "calm"), (2, "calm")]
    assert versions_of(tmp_path / "a.db") == ("9000", 9000)


@pytest.mark.asyncio
async def test_a_step_that_fails_leaves_the_old_version(tmp_path: Path) -> None:
    """If a step fails, its earlier statements are undone and the version stays."""
    broken = write_step(
        tmp_path / "later", "CREATE TABLE extra (id INTEGER)", "ALTER TABLE absent ADD COLUMN x INTEGER"
    )
    async with open_database(tmp_path / "a.db") as database:
        with pytest.raises(StoreError, match="no such table: absent"):
            async with database.writing() as connection:
                await migrate(connection, folders=(VERSIONS, broken))
    assert versions_of(tmp_path / "a.db") == (HEAD, int(HEAD))
    assert "extra" not in shape(tmp_path / "a.db")


@pytest.mark.asyncio
async def test_a_migration_may_take_longer_than_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large old database takes minutes on a slow disk. One that is up to date already has the time of one write, in
    which a disk that does not answer is told of.
    """
    limits: list[float] = []
    within: list[float] = []

    @asynccontextmanager
    async def limited(database: Database, deadline_s: float) -> AsyncIterator[None]:
        limits.append(deadline_s)
        async with translated(database, deadline_s):
            yield

    async def migrated(connection: AsyncConnection) -> None:
        within.append(limits[-1])
        await migrate(connection)

    translated = Database._translated
    monkeypatch.setattr(Database, "_translated", limited)
    monkeypatch.setattr("bot.store.database.migrate", migrated)
    path = tmp_path / "a.db"
    for _ in range(2):
        async with open_database(path):
            pass
    assert within == [MIGRATION_S]
    assert set(limits) - set(within) == {5.0 + TRANSACTION_GRACE_S}


def dump(path: Path) -> list[str]:
    """Return all of a database as SQL, and its own version mark."""
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return [f"-- {version}", *(line for (line,) in connection.execute("SELECT sql FROM sqlite_master"))]


@pytest.mark.asyncio
async def test_an_interrupted_takeover_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A takeover of a database of before Alembic that does not reach its end leaves it as it was."""
    broken = write_step(tmp_path / "later", "ALTER TABLE absent ADD COLUMN x INTEGER")
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as old, old:
        for statement in (statement for step in STEPS[:5] for statement in step):
            old.execute(statement)
        old.execute("PRAGMA user_version = 5")
    before = dump(path)
    monkeypatch.setattr("bot.store.database.migrate", partial(migrate, folders=(VERSIONS, broken)))
    with pytest.raises(StoreError, match="no such table: absent"):
        async with open_database(path):
            pass
    assert dump(path) == before
    monkeypatch.undo()
    async with open_database(path):
        pass
    assert versions_of(path) == (HEAD, int(HEAD))
