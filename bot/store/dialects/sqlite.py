"""SQLite: opens one file, and removes the bytes of what was deleted from it.

The journal is a WAL, so that readers (`roomtone explain`, a backup) never wait for the bot. Foreign keys are on, so
that deleting a session deletes everything in it. Every transaction begins explicitly. The driver's implicit transaction
starts only at the first write, so another writer could change the data between a read and the write that depends on it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import AbstractAsyncContextManager, ExitStack, closing, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import aiosqlite
import structlog
from sqlalchemy import URL, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from bot.private_files import make_private_files, make_private_folder
from bot.store.dialects.sqlite_sql import SQLITE_SQL, sqlite_failure
from bot.store.migrations.upgrade import VERSION_QUERY, require_current
from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

    from bot.shards import Shards, Succession
    from bot.store.dialects.port import BotLock

log = structlog.get_logger()

Synchronous = Literal["full", "normal"]

# One connection writes, the others read; the driver gives each a thread.
POOL_SIZE = 4
# Pages of the file that each connection keeps: 128. SQLite's default of 2 MB each is more than an evening's file, which
# the system caches too. Searches take as long. Negative: KiB instead of pages.
_CACHE_SIZE = "PRAGMA cache_size = -512"
# How long `verify_database_file` waits for a lock.
_CHECK_WAIT_S = 2.0
# Each try waits for readers as long as a connection waits for a lock, so more tries would keep writers waiting.
_WIPE_TRIES = 2
# How long a connection has to close, besides the time that it may wait for another program's lock.
_CLOSE_S = 1.0
_READ_SCHEMA = text("SELECT 1 FROM sqlite_master LIMIT 1")
# Reads a text that a failing disk has changed, so that it is no UTF-8 any more, with a sign in place of what is lost
# (`bot.store.rows` knows it by that). The driver itself would fail at such a row, for all rows of the query, and quote
# it.
_TEXT_FACTORY = partial(str, encoding="utf-8", errors="replace")


class SqliteBotLock:
    """The lock of the data folder, which cannot be lost. Implements `bot.store.dialects.port.BotLock`."""

    has_rival = False

    async def look(self) -> bool:
        return False

    async def taken_over(self) -> None:
        await asyncio.Event().wait()


class SqliteDialect:
    """One database file. Implements `bot.store.dialects.port.Dialect`."""

    sql = SQLITE_SQL
    writers_at_once = 1
    # Errors from outside the code. Anything else is a bug and is not caught.
    failures: tuple[type[BaseException], ...] = (SQLAlchemyError, sqlite3.Error, TimeoutError, OSError)

    def __init__(self, path: Path, *, synchronous: Synchronous, busy_timeout_s: float) -> None:
        """Make the folder and the file. Raises `StoreError` if that fails."""
        self._path = path
        self.place = str(path)
        try:
            make_private_folder(path.parent)
            make_private_files(path)
        except OSError as exc:
            raise sqlite_failure(exc, path.parent) from exc
        self.readers = create_async_engine(
            URL.create("sqlite+aiosqlite", database=str(path)),
            async_creator=partial(_Connection, path, wait_s=busy_timeout_s + _CLOSE_S),
            pool_size=POOL_SIZE,
            max_overflow=0,
            # The connection that was used last is used next, and has read the pages: in turns, each would keep its own.
            pool_use_lifo=True,
            # Parameters hold what people said, which must not reach errors and logs.
            hide_parameters=True,
        )
        _prepare_connections(self.readers, synchronous=synchronous, busy_timeout_s=busy_timeout_s)
        self.writers = self.readers.execution_options(roomtone_begin="BEGIN IMMEDIATE")

    async def begin_writing(self, connection: AsyncConnection, step_s: float) -> None:
        """Read the tables' definitions; BEGIN IMMEDIATE has waited for other processes. They are of this machine, and
        wait for one that hangs until it is killed.

        After another connection's VACUUM, SQLite 3.40 finds no table for a DELETE that is the first statement.
        """
        await connection.execute(_READ_SCHEMA)

    async def lock_schema(self, connection: AsyncConnection) -> None:
        """Do nothing: BEGIN IMMEDIATE keeps others away."""

    def held_by_bot(self, shards: Shards, succession: Succession) -> AbstractAsyncContextManager[BotLock]:
        """Refuse a part of the servers: another machine cannot use the file. Raises `StoreError`.

        The lock of the data folder keeps a second bot away (`bot.folder_lock`).
        """
        if not shards.is_whole:
            raise StoreError(
                Text(
                    "Shards in several processes need one PostgreSQL database "
                    "(ROOMTONE_DATABASE_URL). {path} is none. Use one process for all shards "
                    "(`roomtone run --shards auto`), or set the database.",
                    path=self.place,
                )
            )
        return nullcontext(SqliteBotLock())

    def failure(self, error: BaseException) -> StoreError:
        return sqlite_failure(error, self._path)

    def cause(self, error: BaseException) -> BaseException | None:
        # SQLite's messages name tables and columns, never values.
        return error

    async def wipe(self) -> bool:
        """Merge the pages of the search index, which otherwise keep deleted words, write the database anew and truncate
        the journal.

        SQLite overwrites deleted rows itself (`PRAGMA secure_delete`), but it copies rows when it balances pages, and
        overwrites only the last copy of a deleted one; the others stay in unused parts of pages until the database is
        written anew. The journal keeps them until it is truncated.
        """
        await self._maintain("INSERT INTO passage_index (passage_index) VALUES ('optimize')")
        await self._maintain("VACUUM")
        for _ in range(_WIPE_TRIES):
            ((is_being_read, _, _),) = await self._maintain("PRAGMA wal_checkpoint(TRUNCATE)")
            if not is_being_read:
                return True
        log.warning("journal_not_truncated", remedy="close other programs that read the database")
        return False

    async def _maintain(self, statement: str) -> list[tuple[int, ...]]:
        """Run a statement outside of any transaction."""
        async with self.readers.connect() as connection:
            raw = await connection.get_raw_connection()
            driver = raw.driver_connection
            assert driver is not None, "an open connection has a driver connection"
            found: list[tuple[int, ...]] = await driver.execute_fetchall(statement)
            return found


class _Connection(aiosqlite.Connection):
    """A connection that its own thread closes, whatever was cancelled: its opening, a statement, or its closing.

    `wait_s`: how long the thread has to end. One that a disk holds cannot be ended, and is left behind.
    """

    def __init__(self, path: Path, *, wait_s: float) -> None:
        super().__init__(self._open, iter_chunk_size=1)
        # A thread that was left behind must not keep the process.
        self._thread.daemon = True
        self._path = path
        self._wait_s = wait_s
        self._closing = ExitStack()

    async def close(self) -> None:
        if not self._running:
            return
        try:
            async with asyncio.timeout(self._wait_s):
                ended = self.stop()
                assert ended is not None, "an event loop runs"
                await ended
        except TimeoutError:
            log.error("database_thread_left_behind", remedy="look at the disk")  # noqa: TRY400 - nothing here failed

    def stop(self) -> asyncio.Future[Any] | None:
        # aiosqlite closes only what somebody waited for, and drops what a cancelled opening has opened since.
        self._tx.put_nowait((None, self._closing.close))
        return super().stop()

    def _open(self) -> sqlite3.Connection:
        opened = self._closing.enter_context(closing(sqlite3.connect(self._path, check_same_thread=False)))
        # Closing alone does not end a transaction: a half-read cursor keeps it and its lock for as long as somebody
        # holds the cancelled task.
        self._closing.callback(opened.rollback)
        return opened


def _prepare_connections(engine: AsyncEngine, *, synchronous: Synchronous, busy_timeout_s: float) -> None:
    """Set the pragmas of each new connection and begin each transaction explicitly."""

    def on_connect(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # None: the driver begins no transaction by itself (docs.sqlalchemy.org, "SQLite transaction isolation").
        connection.isolation_level = None
        assert connection.driver_connection is not None, "an open connection has a driver connection"
        connection.driver_connection.text_factory = _TEXT_FACTORY
        cursor = connection.cursor()
        try:
            cursor.execute(f"PRAGMA busy_timeout = {round(busy_timeout_s * 1000)}")
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute(f"PRAGMA synchronous = {synchronous.upper()}")
            cursor.execute("PRAGMA foreign_keys = ON")
            cursor.execute(_CACHE_SIZE)
            # Overwrites deleted data: forgotten text must not remain in free pages.
            cursor.execute("PRAGMA secure_delete = ON")
        finally:
            cursor.close()

    def on_begin(connection: object) -> None:
        options = connection.get_execution_options()  # type: ignore[attr-defined]
        connection.exec_driver_sql(options.get("roomtone_begin", "BEGIN"))  # type: ignore[attr-defined]

    event.listen(engine.sync_engine, "connect", on_connect)
    event.listen(engine.sync_engine, "begin", on_begin)


def connect_read_only(path: Path, *, wait_s: float) -> sqlite3.Connection:
    """Open a SQLite file for reading. `wait_s`: how long to wait for a lock. Raises `sqlite3.Error`."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=wait_s, isolation_level=None)


def verify_database_file(path: Path) -> None:
    """Check the whole file at `path` read-only; a running bot may have it open.

    Raises `StoreError` if it cannot be read, is damaged, or is of another version.
    """
    try:
        with closing(connect_read_only(path, wait_s=_CHECK_WAIT_S)) as connection:
            (parts,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if parts:
                require_current(str(connection.execute(VERSION_QUERY).fetchone()[0]), str(path))
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict == "ok" and connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
                verdict = "a row belongs to a session that is not there"
    except UnicodeDecodeError:
        verdict = "the names of its tables cannot be read"
    except SqliteDialect.failures as exc:
        raise sqlite_failure(exc, path) from exc
    if verdict != "ok":
        raise StoreError(
            Text(
                "{path} is damaged ({verdict}). Stop the bot. Then restore a backup with `roomtone "
                "restore FILE`, or move the file away.",
                path=str(path),
                verdict=verdict,
            )
        )
