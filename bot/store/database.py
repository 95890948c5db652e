"""One embedded SQLite database, opened, guarded and closed.

Owns the connections and the rule that writes go one after the other. It does not know what is stored.

Choices: WAL, so that readers (`roomtone explain`, a backup) never wait for the bot; foreign keys on, so that
deleting a session deletes all of it; `synchronous` by setting. Every transaction begins explicitly, because
the driver's implicit one starts at the first write and so lets a read-then-write pair be torn.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sqlalchemy import URL, event
from sqlalchemy.exc import MissingGreenlet
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from bot.store.failures import FAILURES, store_failure
from bot.store.reader import Reader
from bot.store.schema import migrate

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

# One connection writes and the others read; each is a thread of the driver.
POOL_SIZE = 4
# Beyond the wait for a lock: how long a transaction may take before the disk counts as stalled.
TRANSACTION_GRACE_S = 20.0

_NOTHING: Mapping[str, object] = MappingProxyType({})

T = TypeVar("T")

Synchronous = Literal["full", "normal"]


class Database:
    """The open database. Made by `open_database`, which also closes it; safe for all tasks of one loop."""

    def __init__(self, engine: AsyncEngine, *, path: Path, busy_timeout_s: float) -> None:
        self.path = path
        self._readers = engine
        self._writers = engine.execution_options(roomtone_begin="BEGIN IMMEDIATE")
        self._deadline_s = busy_timeout_s + TRANSACTION_GRACE_S
        # SQLite has one writer anyway; waiting here is fair and cheap, waiting there polls.
        self._write_turn = asyncio.Lock()
        self._reader = Reader(path, busy_timeout_s=busy_timeout_s)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection that sees one consistent state. Raises `StoreError`."""
        try:
            async with asyncio.timeout(self._deadline_s), self._readers.begin() as connection:
                yield connection
        except FAILURES as exc:
            raise store_failure(exc, self.path) from exc

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` reads with a plain connection, in a thread. Raises `StoreError`.

        One way to the thread and back, where `reading` takes two and one more a statement: for what somebody waits for.
        """
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._reader.read(work)
        except FAILURES as exc:
            raise store_failure(exc, self.path) from exc

    async def rows(self, sql: str, parameters: Mapping[str, object] = _NOTHING) -> list[tuple[Any, ...]]:
        """Return all rows of one reading statement, as SQLite has them. Raises `StoreError`."""
        return await self.read(lambda connection: connection.execute(sql, dict(parameters)).fetchall())

    async def checkpoint(self) -> None:
        """Bring the journal into the database and empty it, so that nothing deleted lies in it any more. As far as
        it can be done while another process reads. Raises `StoreError`."""
        try:
            async with asyncio.timeout(self._deadline_s), self._write_turn, self._readers.connect() as connection:
                raw = await connection.get_raw_connection()
                driver = raw.driver_connection
                assert driver is not None, "a connection just taken has its driver's"
                await driver.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
        except FAILURES as exc:
            raise store_failure(exc, self.path) from exc

    async def aclose(self) -> None:
        """Close all connections."""
        await self._reader.aclose()
        await self._readers.dispose()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection inside a write transaction: committed at the end, rolled back on any error.

        Raises `StoreError`. *Cancellation*: rolls back, unless the commit is already under way; then it lands.
        """
        try:
            async with asyncio.timeout(self._deadline_s), self._write_turn, self._writers.begin() as connection:
                yield connection
        except FAILURES as exc:
            raise store_failure(exc, self.path) from exc


@asynccontextmanager
async def open_database(
    path: Path, *, synchronous: Synchronous = "full", busy_timeout_s: float = 5.0
) -> AsyncIterator[Database]:
    """Open (or make) the database at `path`, bring its schema up to date, lend it, close it.

    Raises `StoreError` with the remedy when it cannot be opened, is damaged, or is of a newer Roomtone.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise store_failure(exc, path.parent) from exc
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(path)),
        pool_size=POOL_SIZE,
        max_overflow=0,
        # Parameters are what people said: they stay out of errors and logs.
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
    """Give each new connection its pragmas, and each transaction an explicit beginning."""

    def on_connect(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # None: the driver begins nothing by itself (docs.sqlalchemy.org, "SQLite transaction isolation").
        connection.isolation_level = None
        cursor = connection.cursor()
        try:
            cursor.execute(f"PRAGMA busy_timeout = {round(busy_timeout_s * 1000)}")
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute(f"PRAGMA synchronous = {synchronous.upper()}")
            cursor.execute("PRAGMA foreign_keys = ON")
            # What is deleted is overwritten: what somebody wants forgotten must not lie in free pages.
            cursor.execute("PRAGMA secure_delete = ON")
        finally:
            cursor.close()

    def on_invalidate(connection: DBAPIConnection, _entry: ConnectionPoolEntry, _error: BaseException | None) -> None:
        # A caller cancelled in the middle of a SELECT: closing alone would leave the transaction and its lock to the
        # half-read cursor, which lives as long as somebody keeps the cancelled task. Outside a greenlet nobody can
        # wait, and nothing is open.
        with suppress(MissingGreenlet):
            connection.run_async(lambda driver: driver.rollback())

    def on_begin(connection: object) -> None:
        options = connection.get_execution_options()  # type: ignore[attr-defined]
        connection.exec_driver_sql(options.get("roomtone_begin", "BEGIN"))  # type: ignore[attr-defined]

    event.listen(engine.sync_engine, "connect", on_connect)
    event.listen(engine.sync_engine, "invalidate", on_invalidate)
    event.listen(engine.sync_engine, "begin", on_begin)
