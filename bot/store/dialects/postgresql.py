"""PostgreSQL: opens a database by its URL.

Writes of different servers wait for each other nowhere. Those of one server take the row of its claim first
(`bot.store.claims`). So every read in such a transaction sees all that was committed before, and the store's
comparisons (the compare-and-swap of a fold) hold with any number of processes. Readers see a snapshot and wait for
nobody.

Every wait is bounded, here and on the server: connecting, a statement, a lock, an idle transaction, and a network that
swallows packets.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from bot.store.dialects.port import BotLock, DatabaseDescription
from bot.store.dialects.postgresql_lock import held_lock, held_shards
from bot.store.dialects.postgresql_sql import POSTGRESQL_SQL, postgresql_failure
from bot.store.migrations.upgrade import VERSION_QUERY, require_current
from bot.store.tables import metadata
from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from bot.shards import Shards, Succession

# Three connections write, so that a server of which another process holds the row keeps no other waiting, and the
# others read.
WRITERS = 3
POOL_SIZE = 6
CONNECT_TIMEOUT_S = 5
# How long one statement may take on the server: as long as a transaction of `Database`.
_STATEMENT_TIMEOUT_S = 20.0
_VACUUM_TIMEOUT_S = 110.0
# A transaction that waits for the bot longer was forgotten by it.
_IDLE_TIMEOUT_S = 60.0
# How long sent data may stay unacknowledged before the connection counts as lost.
NETWORK_TIMEOUT_S = 15.0
# While an answer is waited for, all that was sent is acknowledged. So the server is asked whether it is there, and it
# counts as lost after as long: Linux looks at `tcp_user_timeout` with the next question, other systems count these.
_ASK_EVERY_S = 5.0
_MOST_UNANSWERED = 2
# Rows of these are never deleted for anybody, and every process reads them all the time.
_KEEP_ALL_ROWS = {"room_claims", "search_marks"}
_TABLES = sql.SQL(", ").join(sql.Identifier(name) for name in metadata.tables if name not in _KEEP_ALL_ROWS)
# How long `describe` waits for a lock.
_CHECK_WAIT_S = 2.0
_DESCRIBED = """
    SELECT current_setting('server_version'), pg_database_size(current_database()),
    to_regclass('alembic_version') IS NOT NULL
"""
_BEGIN = "SELECT set_config('idle_in_transaction_session_timeout', :step, true)"
# A server's database may have several schemas with a bot each.
_SCHEMA_LOCK = """
    SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('roomtone schema ' || current_schema(), 0))
"""
_NO_URL = Text(
    "ROOMTONE_DATABASE_URL is not the address of a PostgreSQL database. It must look like this: "
    "postgresql://user:password@host:5432/name. In the password, write @ as %40, / as %2F and % as "
    "%25."
)


class PostgresDialect:
    """One PostgreSQL database. Implements `bot.store.dialects.port.Dialect`."""

    # Errors from outside the code. Anything else is a bug and is not caught.
    failures: tuple[type[BaseException], ...] = (SQLAlchemyError, psycopg.Error, TimeoutError, OSError)
    writers_at_once = WRITERS

    def __init__(self, url: str, *, busy_timeout_s: float) -> None:
        """`url`: as libpq reads it, with the password. Raises `StoreError` if it is none."""
        self.sql = POSTGRESQL_SQL
        self.options = connection_options(url, busy_timeout_s)
        self.place = place_of(url)
        engine = create_async_engine(
            "postgresql+psycopg://",
            async_creator=lambda: psycopg.AsyncConnection.connect(**self.options),
            pool_size=POOL_SIZE,
            max_overflow=0,
            # A server that was restarted has ended all connections; a new one is made without a failed turn.
            pool_pre_ping=True,
            # Parameters hold what people said, which must not reach errors and logs.
            hide_parameters=True,
        )
        # SQLAlchemy would ask for writing by name after each reading, also of a server whose administrator forbids it.
        dialect: Any = engine.dialect
        dialect.set_readonly = lambda connection, value: connection.set_read_only(value or None)
        self.readers = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        # Each statement sees what was committed before it: the first ones wait for the server's row.
        self.writers = engine.execution_options(isolation_level="READ COMMITTED")

    async def begin_writing(self, connection: AsyncConnection, step_s: float) -> None:
        await connection.execute(text(_BEGIN), {"step": str(round(step_s * 1000))})

    async def lock_schema(self, connection: AsyncConnection) -> None:
        await connection.execute(text(_SCHEMA_LOCK))

    def held_by_bot(self, shards: Shards, succession: Succession) -> AbstractAsyncContextManager[BotLock]:
        return held_lock(self.options, self.place, shards, succession)

    def failure(self, error: BaseException) -> StoreError:
        return postgresql_failure(error, self.place)

    def cause(self, error: BaseException) -> BaseException | None:
        # The details of PostgreSQL's messages quote rows.
        return None

    async def wipe(self) -> bool:
        """Write the tables anew, without the deleted rows. Nobody can read or write meanwhile.

        What the server keeps besides (its write-ahead log, archives, replicas, freed blocks of the disk) is its
        operator's (docs/operations.md).
        """
        async with await psycopg.AsyncConnection.connect(**{**self.options, "autocommit": True}) as connection:
            await connection.execute(f"SET statement_timeout = {round(_VACUUM_TIMEOUT_S * 1000)}")
            try:
                await connection.execute(sql.SQL("VACUUM (FULL) ") + _TABLES)
            except psycopg.errors.LockNotAvailable:
                # A reader holds a table.
                return False
        return True


def describe(url: str) -> DatabaseDescription:
    """Return what the database is and how large, for `roomtone doctor`. Raises `StoreError`."""
    options = connection_options(url, _CHECK_WAIT_S)
    place = place_of(url)
    try:
        with psycopg.connect(**{**options, "autocommit": True}) as connection:
            row = connection.execute(_DESCRIBED).fetchone()
            assert row is not None, "it selects one row"
            server, size_bytes, is_made = row
            found = connection.execute(VERSION_QUERY).fetchone() if is_made else None
            running = held_shards(connection)
    except PostgresDialect.failures as exc:
        raise postgresql_failure(exc, place) from None
    if found is not None:
        require_current(str(found[0]), place)
    held = "no memory in it yet; the first session makes it" if found is None else f"{size_bytes // 1_000_000:,} MB"
    described = f"{place}, PostgreSQL {server}, {held}"
    return DatabaseDescription(described, tuple(running))


def place_of(url: str) -> str:
    """Return what sentences call the database of a URL: the URL without user, password and options.

    Raises `StoreError` if it is none.
    """
    parts = _parsed(url)
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{parts.get('host') or 'localhost'}{port}/{parts.get('dbname') or parts.get('user') or ''}"


def hosts_of(url: str) -> tuple[str, ...]:
    """Return the machines that a URL may lead to, without those that are reached by a socket of this machine.

    Raises `StoreError` if it is none.
    """
    # What the URL leaves out, libpq takes from the environment: PGHOST, PGHOSTADDR.
    usual = {each.keyword.decode(): each.val.decode() for each in Conninfo.get_defaults() if each.val is not None}
    parts = usual | _parsed(url)
    named = str(parts.get("hostaddr") or parts.get("host") or "")
    # A folder or an abstract name is a socket, and so is what is left out.
    return tuple(host for host in named.split(",") if host and not host.startswith(("/", "@")))


def _parsed(url: str) -> dict[str, Any]:
    """Return the parts of a URL. Raises `StoreError` if it is none."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        # `from None`: the message quotes parts of the URL.
        raise StoreError(_NO_URL) from None
    # A password with @ or / in it ends too early for libpq, and the rest would be told as the host, port or database.
    _, _, named = url.partition("://")
    user, _, rest = named.partition("@")
    if "/" not in user:
        named = rest
    # A name that begins with @ is an abstract socket.
    if "@" in named.partition("?")[0][1:]:
        raise StoreError(_NO_URL)
    return parts


def connection_options(url: str, busy_timeout_s: float) -> dict[str, Any]:
    """Return the options of a connection: those of the URL, and limits for everything that is waited for.

    Raises `StoreError` if it is no URL.
    """
    limits: dict[str, object] = {
        "statement_timeout": round((busy_timeout_s + _STATEMENT_TIMEOUT_S) * 1000),
        "lock_timeout": round(busy_timeout_s * 1000),
        "idle_in_transaction_session_timeout": round(_IDLE_TIMEOUT_S * 1000),
        # By itself the server notices after two hours that a machine is gone, and keeps its locks until then.
        "tcp_keepalives_idle": round(NETWORK_TIMEOUT_S),
        "tcp_keepalives_interval": 5,
        "tcp_keepalives_count": 3,
        # Compiling a search takes longer than the search.
        "jit": "off",
    }
    own = _parsed(url)
    wanted = " ".join(f"-c {name}={value}" for name, value in limits.items())
    return {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "keepalives_idle": round(_ASK_EVERY_S),
        "keepalives_interval": round(_ASK_EVERY_S),
        "keepalives_count": _MOST_UNANSWERED,
        "tcp_user_timeout": round(NETWORK_TIMEOUT_S * 1000),
        "client_encoding": "utf8",
        **own,
        # Whoever takes the shards of a process that hangs ends its connections by this name.
        "application_name": f"roomtone {secrets.token_hex(8)}",
        "options": f"{own.get('options') or ''} {wanted}".strip(),
    }
