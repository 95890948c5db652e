"""The SQLite database: opening, transactions, checking and closing.

Owns the connections and serialises writes. It does not know the tables.

The journal is a WAL, so that readers (`roomtone explain`, a backup) never wait for the bot. Foreign keys are on, so
that deleting a session deletes everything in it. Every transaction begins explicitly. The driver's implicit transaction
starts only at the first write, so another writer could change the data between a read and the write that depends on it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sqlalchemy import URL, event
from sqlalchemy.exc import MissingGreenlet
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from bot.private_files import make_private_files, make_private_folder
from bot.store.failures import FAILURES, store_failure
from bot.store.migrations.upgrade import HEAD, migrate, too_new
from bot.store.reader import ThreadedReader
from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

# One connection writes, the others read; the driver gives each a thread.
POOL_SIZE = 4
# How long a transaction may take, besides waiting for the lock, before the disk counts as stalled.
TRANSACTION_GRACE_S = 20.0

# A database of a gigabyte takes about half a minute.
VACUUM_TIMEOUT_S = 120.0

# How long `verify_database_file` waits for a lock.
_CHECK_WAIT_S = 2.0

_NOTHING: Mapping[str, object] = MappingProxyType({})

T = TypeVar("T")

Synchronous = Literal["full", "normal"]


class Database:
    """An open database, from `open_database`. Safe for all tasks of one event loop."""

    def __init__(self, engine: AsyncEngine, *, path: Path, busy_timeout_s: float) -> None:
        self.path = path
        self._readers = engine
        self._writers = engine.execution_options(roomtone_begin="BEGIN IMMEDIATE")
        self._deadline_s = busy_timeout_s + TRANSACTION_GRACE_S
        # SQLite allows one writer anyway. This lock is fair and cheap; SQLite's own wait polls.
        self._write_lock = asyncio.Lock()
        self._reader = ThreadedReader(path, busy_timeout_s=busy_timeout_s)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection that sees one consistent snapshot. Raises `StoreError`."""
        try:
            async with asyncio.timeout(self._deadline_s), self._readers.begin() as connection:
                yield connection
        except FAILURES as exc:
            raise store_failure(exc, self.path) from exc

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on a plain read-only connection in a thread and return its result. Raises `StoreError`.

        Use it where somebody is waiting: it crosses to a thread only once. `reading` crosses once for each statement
        and twice more.
        """
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._reader.read(work)
        except FAILURES as exc:
            raise store_failure(exc, self.path) from exc

    async def rows(self, sql: str, parameters: Mapping[str, object] = _NOTHING) -> list[tuple[Any, ...]]:
        """Run one SELECT and return all rows. Raises `StoreError`."""
        return await self.read(lambda connection: connection.execute(sql, dict(parameters)).fetchall())

    async def checkpoint(self) -> bool:
        """Move the journal into the database and truncate it, so that the journal holds no deleted text any more.

        Returns False if another connection was reading, so that the journal could not be truncated. Raises
        `StoreError`.
        """
        try:
            async with asyncio.timeout(self._deadline_s), self._write_lock, self._readers.connect() as connection:
                raw = await connection.get_raw_connection()
                driver = raw.driver_connection
                assert driver is not None, "an open connection has a driver connection"
                ((busy, _, _),) = await driver.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
                return not busy
        except FAILURES as exc:
            raise store_failure(exc, self.path) from exc

    async def vacuum(self) -> None:
        """Write the whole database anew. SQLite copies rows when it balances pages, and overwrites only the last copy
        of a deleted one; the others stay in unused parts of pages until then. Writers wait. Raises `StoreError`.
        """
        try:
            async with asyncio.timeout(VACUUM_TIMEOUT_S), self._write_lock, self._readers.connect() as connection:
                raw = await connection.get_raw_connection()
                driver = raw.driver_connection
                assert driver is not None, "an open connection has a driver connection"
                await driver.execute_fetchall("VACUUM")
        except FAILURES as exc:
            raise store_failure(exc, self.path) from exc

    async def aclose(self) -> None:
        await self._reader.aclose()
        await self._readers.dispose()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection in a write transaction: commits at the end, rolls back on any error.

        Raises `StoreError`. *Cancellation* rolls back, unless the commit has already begun; then it completes.
        """
        try:
            async with asyncio.timeout(self._deadline_s), self._write_lock, self._writers.begin() as connection:
                yield connection
        except FAILURES as exc:
            raise store_failure(exc, self.path) from exc


@asynccontextmanager
async def open_database(
    path: Path, *, synchronous: Synchronous = "full", busy_timeout_s: float = 5.0
) -> AsyncIterator[Database]:
    """Open or create the database at `path`, migrate it, yield it, and close it.

    Raises `StoreError`, with the remedy, if the file cannot be opened, is damaged, or was written by a newer Roomtone.
    """
    try:
        make_private_folder(path.parent)
        make_private_files(path)
    except OSError as exc:
        raise store_failure(exc, path.parent) from exc
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(path)),
        pool_size=POOL_SIZE,
        max_overflow=0,
        # Parameters hold what people said, which must not reach errors and logs.
        hide_parameters=True,
    )
    _prepare_connections(engine, synchronous=synchronous, busy_timeout_s=busy_timeout_s)
    database = Database(engine, path=path, busy_timeout_s=busy_timeout_s)
    try:
        async with database.writing() as connection:
            await migrate(connection)
        yield database
    finally:
        await database.aclose()


def _prepare_connections(engine: AsyncEngine, *, synchronous: Synchronous, busy_timeout_s: float) -> None:
    """Set the pragmas of each new connection and begin each transaction explicitly."""

    def on_connect(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # None: the driver begins no transaction by itself (docs.sqlalchemy.org, "SQLite transaction isolation").
        connection.isolation_level = None
        cursor = connection.cursor()
        try:
            cursor.execute(f"PRAGMA busy_timeout = {round(busy_timeout_s * 1000)}")
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute(f"PRAGMA synchronous = {synchronous.upper()}")
            cursor.execute("PRAGMA foreign_keys = ON")
            # Overwrites deleted data: forgotten text must not remain in free pages.
            cursor.execute("PRAGMA secure_delete = ON")
        finally:
            cursor.close()

    def on_invalidate(connection: DBAPIConnection, _entry: ConnectionPoolEntry, _error: BaseException | None) -> None:
        # After a cancelled SELECT, closing alone does not end the transaction: the half-read cursor keeps it and its
        # lock for as long as somebody holds the cancelled task. Outside a greenlet nothing is open and nothing can
        # wait.
        with suppress(MissingGreenlet):
            connection.run_async(lambda driver: driver.rollback())

    def on_begin(connection: object) -> None:
        options = connection.get_execution_options()  # type: ignore[attr-defined]
        connection.exec_driver_sql(options.get("roomtone_begin", "BEGIN"))  # type: ignore[attr-defined]

    event.listen(engine.sync_engine, "connect", on_connect)
    event.listen(engine.sync_engine, "invalidate", on_invalidate)
    event.listen(engine.sync_engine, "begin", on_begin)


def verify_database_file(path: Path) -> None:
    """Check the whole file at `path` read-only; a running bot may have it open.

    Raises `StoreError` if it cannot be read, is damaged, or was written by a newer Roomtone.
    """
    try:
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_CHECK_WAIT_S)
        ) as connection:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if version > int(HEAD):
                raise too_new(str(version))
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except FAILURES as exc:
        raise store_failure(exc, path) from exc
    if verdict != "ok":
        raise StoreError(
            Text(
                "{path} is damaged ({verdict}). Stop the bot and restore a backup, or move the file away.",
                path=str(path),
                verdict=verdict,
            )
        )
