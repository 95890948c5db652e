"""A database that cannot be used raises an error in one plain sentence with the remedy, and no write is
left half done.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from bot.store.database import Database, open_database
from bot.store.sessions import check_writable
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from compaction.model import SessionId
from tests.bot.conftest import Place
from tests.compaction.turn_store_contract import fill, turn
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import loop_turns
from tests.patience import settle

EVENING = SessionId("evening")


async def pragma(database: Database, name: str) -> object:
    """Return the value of a pragma on a reading connection."""
    async with database.reading() as connection:
        return (await connection.execute(text(f"PRAGMA {name}"))).scalar_one()


async def test_connections_are_durable_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections use WAL, foreign keys and a busy timeout, and flush at each commit unless the operator chose
    otherwise. They overwrite what is deleted, though not every SQLite does so by itself.
    """
    connect = sqlite3.connect

    def connect_careless(*args: Any, **how: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **how)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_careless)
    async with open_database(tmp_path / "a.db", busy_timeout_s=1.5) as database:
        assert await pragma(database, "journal_mode") == "wal"
        assert await pragma(database, "foreign_keys") == 1
        assert await pragma(database, "synchronous") == 2
        assert await pragma(database, "busy_timeout") == 1500
        assert await pragma(database, "secure_delete") == 1
    async with open_database(tmp_path / "a.db", synchronous="normal") as database:
        assert await pragma(database, "synchronous") == 1


async def test_a_failed_write_leaves_nothing(database: Database) -> None:
    """If a transaction raises an error, nothing that it wrote is stored."""

    async def fail() -> None:
        async with database.writing() as connection:
            await connection.execute(text("INSERT INTO sessions (id, started_at) VALUES ('x', 1)"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with database.reading() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM sessions"))).scalar_one() == 0


async def test_something_else_is_not_a_database(tmp_path: Path) -> None:
    """A file that is not a database is refused and stays unchanged."""
    path = tmp_path / "a.db"
    path.write_text("Dear diary, " * 100)
    with pytest.raises(StoreError, match="not a database"):
        async with open_database(path):
            pass
    assert path.read_text().startswith("Dear diary")


async def test_errors_never_hold_what_was_said(place: Place) -> None:
    """The error for a refused statement contains no parameters, neither in its sentence nor in its cause."""
    secret = "the words somebody said"
    async with open_database(place) as database:
        store = SqlTurnStore(database, FakeClock())
        async with database.writing() as connection:
            await connection.execute(text("DROP TABLE turns"))
        with pytest.raises(StoreError) as caught:
            await store.append_turn(EVENING, turn(0, secret))
    assert secret not in str(caught.value)
    assert secret not in str(caught.value.__cause__)
    assert re.search(r"no such table|relation \"turns\" does not exist", str(caught.value))


async def test_a_cancelled_write_is_whole_or_absent(database: Database) -> None:
    """A write that is cancelled at any step leaves no lock and no partial turn, and can be repeated."""
    store = SqlTurnStore(database, FakeClock())
    for seq in range(60):
        writing = asyncio.ensure_future(store.append_turn(EVENING, turn(seq)))
        await loop_turns(seq)
        writing.cancel()
        await asyncio.wait({writing})
        await store.append_turn(EVENING, turn(seq))
    assert (await store.load(EVENING)).window == tuple(turn(seq) for seq in range(60))


async def test_a_write_that_cannot_be_rolled_back_is_cancelled_all_the_same(file: Path) -> None:
    """Who is told to end while the database fails does not go on as after a failed write."""
    async with open_database(file) as database:
        begun = asyncio.Event()

        async def write() -> None:
            async with database.writing():
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    raise sqlite3.OperationalError("disk I/O error")

        writing = asyncio.ensure_future(write())
        await begun.wait()
        writing.cancel()
        await asyncio.wait({writing})
        assert writing.cancelled()


@pytest.mark.slow
async def test_a_cancelled_reading_write_leaves_no_lock(place: Place) -> None:
    """After a task was cancelled in the middle of a SELECT, others can write, even while a reference to the task is
    kept.
    """
    kept = []
    async with open_database(place, synchronous="normal", busy_timeout_s=60.0) as database:
        store = SqlTurnStore(database, FakeClock())
        await fill(store, 3)

        async def read_in_a_write() -> None:
            async with database.writing() as connection:
                await connection.execute(text("UPDATE turns SET kind = kind"))
                await connection.execute(text("SELECT * FROM turns, turns AS t, turns AS u"))

        for steps in range(40):
            cancelled = asyncio.ensure_future(read_in_a_write())
            await loop_turns(steps)
            cancelled.cancel()
            await asyncio.wait({cancelled})
            kept.append(cancelled)
            await store.append_turn(EVENING, turn(3 + steps))
        assert len(await database.rows("SELECT seq FROM turns WHERE seq >= :first", {"first": 3})) == 40
    assert len(kept) == 40


async def test_readers_do_not_wait_for_a_writer(database: Database) -> None:
    """While a transaction writes, readers see the state before it without waiting."""
    store = SqlTurnStore(database, FakeClock())
    await fill(store, 3)
    async with database.writing() as connection:
        await connection.execute(text("DELETE FROM turns"))
        assert (await store.load(EVENING)).total_turns == 3
    assert (await store.load(EVENING)).total_turns == 0


async def test_a_file_that_was_written_anew_can_be_written_at_once(tmp_path: Path) -> None:
    """After VACUUM, here or by another program, the next transaction finds its tables, even for DELETE."""
    path = tmp_path / "a.db"
    async with open_database(path):
        pass
    async with open_database(path) as database:
        for _ in range(2):
            # The connection that writes next has read the tables' definitions before.
            async with database.reading() as connection:
                await connection.execute(text("SELECT count(*) FROM sessions"))
            with closing(sqlite3.connect(path)) as other:
                other.execute("VACUUM")
            await check_writable(database)
        await database.wipe()
        await check_writable(database)


async def test_whatever_is_cancelled_every_connection_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was still being opened, which nobody waits for any more. No connection waits for the garbage
    collector.
    """
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def recorded(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", recorded)
    async with open_database(tmp_path / "a.db", synchronous="normal") as database:
        for steps in range(40):
            # It has the only connection that is open.
            async with database.reading():
                other = asyncio.ensure_future(check_writable(database))
                await loop_turns(steps)
                other.cancel()
                await asyncio.wait({other})
    assert len(opened) > 2
    await settle(lambda: all(map(is_closed, opened)))


def is_closed(connection: sqlite3.Connection) -> bool:
    """Return whether a connection was closed."""
    try:
        return connection.total_changes < 0
    except sqlite3.ProgrammingError:
        return True
