"""An open database: transactions, plain reads, removal of deleted bytes, and closing.

It does not know the tables. The place says which kind of database it is (`bot.store.dialects`): a file is SQLite's, a
URL is PostgreSQL's.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from sqlalchemy import Executable, text

from bot.shards import ONLY_SHARD, Shards, Succession
from bot.store.dialects.sqlite import SqliteDialect, Synchronous
from bot.store.forgettings import KEY_FILE, ForgettingKey
from bot.store.migrations.upgrade import migrate, require_current, stored_version
from bot.texts.text import Text
from compaction.errors import StoreError
from voice.cancellation import cancellations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from types import ModuleType

    from pydantic import SecretStr
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.dialects.port import BotLock, DatabaseDescription, Dialect

# How long a transaction may take, besides waiting for the lock, before the database counts as stalled.
TRANSACTION_GRACE_S = 20.0

# How long a process may take between two statements of a write transaction, in which no other one writes for the same
# server. One that hangs or whose machine is lost would keep its rooms from beginning elsewhere otherwise. A long
# session is computed in a second, on a busy machine in several.
STEP_S = 10.0
# How long removing the bytes of deleted rows may take: a slow disk needs minutes for a gigabyte. A wipe that is given
# up is for nothing.
WIPE_TIMEOUT_S = 3600.0

# The data folder of a bot that has none of its own.
DATA_DIR = Path("data")


class Database:
    """An open database, from `open_database`. Safe for all tasks of one event loop."""

    def __init__(
        self, dialect: Dialect, *, key: ForgettingKey, busy_timeout_s: float, file: Path | None = None
    ) -> None:
        self.dialect = dialect
        # The queries that each kind of database writes in its own way.
        self.sql = dialect.sql
        # None: the database is PostgreSQL's.
        self.file = file
        self.key = key
        self.deadline_s = busy_timeout_s + TRANSACTION_GRACE_S
        # SQLite lets only one connection write. This wait is fair and cheap, the database's is not.
        self._writers = asyncio.Semaphore(dialect.writers_at_once)
        self._check: Callable[[AsyncConnection], Awaitable[None]] | None = None
        # For a server one connection of this process waits for its row at a time: the others are free meanwhile.
        self._server: int | None = None
        self._server_locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    @property
    def data_dir(self) -> Path:
        """Return the folder with the key that tells who was forgotten."""
        return self.key.path.parent

    def checked(self, check: Callable[[AsyncConnection], Awaitable[None]], *, server: int | None = None) -> Database:
        """Return the same database, with `check` at the beginning of every write transaction, which it may refuse.

        `server`: the id of the server for which it writes.
        """
        other = copy(self)
        other._check = check
        other._server = server
        return other

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection that sees one consistent snapshot. Raises `StoreError`."""
        async with self._translated(self.deadline_s), self.dialect.readers.begin() as connection:
            yield connection

    @asynccontextmanager
    async def writing(self, *, server: int | None = None, step_s: float = STEP_S) -> AsyncIterator[AsyncConnection]:
        """Yield a connection in a write transaction: commits at the end, rolls back on any error. PostgreSQL ends it if
        nothing comes for `step_s`. `server`: the id of the server whose row it will wait for.

        Raises `StoreError`, and what a check raises (`checked`). *Cancellation* rolls back, unless the commit has
        already begun; then it completes.
        """
        async with (
            self._translated(self.deadline_s),
            self._turn_of(server or self._server),
            self._writers,
            self.dialect.writers.begin() as connection,
        ):
            await self.dialect.begin_writing(connection, step_s)
            if self._check is not None:
                await self._check(connection)
            yield connection

    def _turn_of(self, server: int | None) -> AbstractAsyncContextManager[None]:
        """Return what lets one task at a time write for a server."""
        if server is None:
            return nullcontext()
        lock = self._server_locks.get(server)
        if lock is None:
            lock = self._server_locks[server] = asyncio.Lock()
        return lock

    async def rows(self, wanted: Executable | str, parameters: Mapping[str, object] | None = None) -> list[Any]:
        """Run one SELECT and return all rows. The parameters of a text are named: `:name`. Raises `StoreError`."""
        statement = text(wanted) if isinstance(wanted, str) else wanted
        async with self.reading() as connection:
            return list((await connection.execute(statement, dict(parameters or {}))).all())

    async def values(self, wanted: Executable) -> list[Any]:
        """Run one SELECT and return the first column of each row. Raises `StoreError`."""
        return [row[0] for row in await self.rows(wanted)]

    async def value(self, wanted: Executable) -> Any:
        """Run one SELECT and return the first column of its first row; None if it has none. Raises `StoreError`."""
        return next(iter(await self.values(wanted)), None)

    async def change(self, statement: Executable) -> int:
        """Run one statement in a write transaction of its own, and return how many rows it has changed. Raises as
        `writing` does.
        """
        async with self.writing() as connection:
            return (await connection.execute(statement)).rowcount

    async def wipe(self) -> bool:
        """Remove the bytes of deleted rows from the index and the files; writers wait meanwhile. Raises `StoreError`.

        Returns False if another connection was reading, so that some may be left.
        """
        async with self._translated(WIPE_TIMEOUT_S), self._writers:
            return await self.dialect.wipe()

    @asynccontextmanager
    async def held_by_bot(
        self, shards: Shards = ONLY_SHARD, succession: Succession = Succession.REFUSES
    ) -> AsyncIterator[BotLock]:
        """Keep other processes that serve any of the same servers away from the database meanwhile. `succession`: what
        becomes of one that does so now.

        Raises `StoreError` if there is one, or if a database of this kind cannot be shared.
        """
        async with AsyncExitStack() as stack:
            try:
                lock = await stack.enter_async_context(self.dialect.held_by_bot(shards, succession))
            except self.dialect.failures as exc:
                raise self.dialect.failure(exc) from self.dialect.cause(exc)
            yield lock

    async def aclose(self) -> None:
        await self.dialect.readers.dispose()

    @asynccontextmanager
    async def _translated(self, deadline_s: float) -> AsyncIterator[None]:
        """End what takes too long, and turn errors from outside into `StoreError`.

        *Cancellation*: is passed on, also if what was begun cannot even be rolled back.
        """
        told_before = cancellations()
        try:
            async with asyncio.timeout(deadline_s):
                yield
        except self.dialect.failures as exc:
            if cancellations() > told_before:
                # Otherwise a task that goes on after a failed write would never end.
                raise asyncio.CancelledError from self.dialect.cause(exc)
            raise self.dialect.failure(exc) from self.dialect.cause(exc)


@asynccontextmanager
async def open_database(
    place: Path | SecretStr,
    *,
    synchronous: Synchronous = "full",
    busy_timeout_s: float = 5.0,
    create: bool = True,
    migrates: bool = True,
    data_dir: Path | None = None,
) -> AsyncIterator[Database]:
    """Open the database at `place`, migrate it, yield it, and close it.

    `place`: SQLite's file, or the URL of a PostgreSQL database. `synchronous`: of SQLite. `create`: whether to make the
    tables if there are none. `migrates`: False takes the database as it is and changes nothing in it, because another
    process has it open. `data_dir`: the folder with the
    key of those who were forgotten (`bot.store.forgettings`); None: that of SQLite's file, or `DATA_DIR`.

    Raises `StoreError`, with the remedy, if it cannot be opened, is damaged, or is of a version that is unknown or must
    not be migrated.
    """
    folder = data_dir or (place.parent if isinstance(place, Path) else DATA_DIR)
    database = Database(
        _open_dialect(place, synchronous=synchronous, busy_timeout_s=busy_timeout_s),
        key=ForgettingKey(folder / KEY_FILE),
        busy_timeout_s=busy_timeout_s,
        file=place if isinstance(place, Path) else None,
    )
    try:
        if migrates:
            async with database.writing() as connection:
                await database.dialect.lock_schema(connection)
                if await stored_version(connection) is None and not create:
                    raise StoreError(
                        Text(
                            "There is no memory yet in {path}: `roomtone run` creates it.", path=database.dialect.place
                        )
                    )
                await migrate(connection, database.dialect.place)
        else:
            async with database.reading() as connection:
                require_current(await stored_version(connection), database.dialect.place)
        yield database
    finally:
        await database.aclose()


def _open_dialect(place: Path | SecretStr, *, synchronous: Synchronous, busy_timeout_s: float) -> Dialect:
    """Return the dialect of a file or a URL. Raises `StoreError` if its library or its folder cannot be had."""
    if isinstance(place, Path):
        return SqliteDialect(place, synchronous=synchronous, busy_timeout_s=busy_timeout_s)
    dialect: Dialect = _postgresql().PostgresDialect(place.get_secret_value(), busy_timeout_s=busy_timeout_s)
    return dialect


def describe_database(url: SecretStr) -> DatabaseDescription:
    """Look at a PostgreSQL database for `roomtone doctor`: what it is and what it holds.

    Raises `StoreError` if it cannot be used, or was written by a newer Roomtone.
    """
    description: DatabaseDescription = _postgresql().describe(url.get_secret_value())
    return description


def hosts_of_database(url: SecretStr) -> tuple[str, ...]:
    """Return the names or addresses of the machines on which a PostgreSQL database is; none if a socket leads to it.

    Raises `StoreError` if the library is not installed.
    """
    hosts: tuple[str, ...] = _postgresql().hosts_of(url.get_secret_value())
    return hosts


def _postgresql() -> ModuleType:
    """Return the module that needs the optional library. Raises `StoreError` without that."""
    try:
        from bot.store.dialects import postgresql
    except ImportError as exc:
        raise StoreError(
            Text(
                "ROOMTONE_DATABASE_URL names a PostgreSQL database, but the library for it is not "
                "installed. In the checkout, run `make setup`, or `uv tool install "
                "'.[piper,postgres]'`. To use the embedded database, remove the variable."
            )
        ) from exc
    return postgresql
