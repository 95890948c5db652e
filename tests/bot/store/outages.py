"""What can be wrong with a database while the bot runs: it is locked, full, read-only or slow while a block lasts.

What really refuses makes it so, in SQLite and in PostgreSQL: another writer, the file's size, rights, the server.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg import sql
from pydantic import SecretStr
from sqlalchemy import event
from sqlalchemy.util.concurrency import await_

from bot.store.database import Database
from tests.bot.conftest import Place

# A write that finds the database locked gives up soon.
BUSY_S = 0.05


@contextmanager
def locked(place: Place, database: Database) -> Iterator[None]:
    """Another program holds the write lock."""
    if isinstance(place, SecretStr):
        with psycopg.connect(place.get_secret_value()) as other:
            other.execute("LOCK TABLE turns")
            yield
        return
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def full(place: Place, database: Database) -> Iterator[None]:
    """The disk is full: SQLite may take no page more; a PostgreSQL server reports it for each new turn."""
    if isinstance(place, SecretStr):
        with refused_by_server(place, "RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'"):
            yield
        return
    # A limit below the present size means the present size.
    with pragma(database, "max_page_count = 1", afterwards="max_page_count = 1073741823"):
        yield


@contextmanager
def read_only(place: Place, database: Database) -> Iterator[None]:
    """Nothing may be written: a file without rights; a server that has become a replica."""
    if isinstance(place, SecretStr):
        with altered(place, "SET default_transaction_read_only = on", "RESET default_transaction_read_only"):
            yield
        return
    with pragma(database, "query_only = ON", afterwards="query_only = OFF"):
        yield


@contextmanager
def slow(place: Place, database: Database) -> Iterator[None]:
    """A turn that is stored takes longer than a transaction may."""
    before, database.deadline_s = database.deadline_s, BUSY_S
    if isinstance(place, SecretStr):
        with refused_by_server(place, "PERFORM pg_sleep(600)"):
            yield
    else:
        with delayed(database):
            yield
    database.deadline_s = before


@contextmanager
def pragma(database: Database, setting: str, *, afterwards: str) -> Iterator[None]:
    """Give each connection of a SQLite database a setting before it is used, and another one afterwards."""
    engine, now = database.dialect.writers.sync_engine, [setting]

    def on_checkout(connection: Any, *_: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA {now[0]}")
        cursor.close()

    event.listen(engine, "checkout", on_checkout)
    yield
    now[0] = afterwards


@contextmanager
def delayed(database: Database) -> Iterator[None]:
    """Let each new turn wait for a disk that does not answer."""
    engine = database.dialect.writers.sync_engine
    answers = asyncio.Event()

    def on_execute(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT INTO turns"):
            await_(answers.wait())

    event.listen(engine, "before_cursor_execute", on_execute)
    yield
    event.remove(engine, "before_cursor_execute", on_execute)


@contextmanager
def refused_by_server(place: SecretStr, statement: str) -> Iterator[None]:
    """Let the server run a statement before each new turn."""
    with psycopg.connect(place.get_secret_value(), autocommit=True) as owner:
        body = sql.Literal(f"BEGIN {statement}; RETURN NEW; END")
        owner.execute(sql.SQL("CREATE FUNCTION bad_day() RETURNS trigger LANGUAGE plpgsql AS {}").format(body))
        owner.execute("CREATE TRIGGER bad_day BEFORE INSERT ON turns FOR EACH ROW EXECUTE FUNCTION bad_day()")
        yield
        owner.execute("DROP TRIGGER bad_day ON turns")
        owner.execute("DROP FUNCTION bad_day")


@contextmanager
def altered(place: SecretStr, setting: str, reset: str) -> Iterator[None]:
    """Alter the database for new connections, and end the present ones, as when a server becomes a replica."""
    with psycopg.connect(place.get_secret_value(), autocommit=True) as owner:
        name = sql.Identifier(owner.info.dbname)

        def alter(how: str) -> None:
            # It runs in a transaction that may write, whatever new ones may.
            owner.execute("SET default_transaction_read_only = off")
            owner.execute(sql.SQL("ALTER DATABASE {} ").format(name) + sql.SQL(how))
            owner.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

        alter(setting)
        yield
        alter(reset)
