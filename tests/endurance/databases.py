"""The databases on which processes are killed: files of SQLite, and databases of the tests' own PostgreSQL server.

A database is made, looked at without the store, and removed. No connection stays open, so the process may be forked at
any time between.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Protocol

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from tests.bot.conftest import Place
from tests.postgres import running_server

# Every b-tree with the rows that it must have, and everything in the tables' pages.
_INDEXES = """
    SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
    WHERE c.relkind = 'i' AND a.amname = 'btree' AND c.relnamespace = 'public'::regnamespace
"""
_PAGES = """
    SELECT c.relname, found.* FROM pg_class c CROSS JOIN LATERAL verify_heapam(c.oid, check_toast => true) AS found
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
"""
_NOT_VALID = """
    SELECT conname FROM pg_constraint WHERE NOT convalidated
    UNION ALL SELECT indexrelid::regclass::text FROM pg_index WHERE NOT (indisvalid AND indisready AND indislive)
    UNION ALL SELECT tgname FROM pg_trigger WHERE tgenabled = 'D'
"""
# For each foreign key, the query of how many rows name a row that is not there.
_ORPHANS = """
    SELECT format(
        'SELECT count(*) FROM %s AS child WHERE ROW(%s) IS NOT NULL AND NOT EXISTS '
        '(SELECT FROM %s AS parent WHERE ROW(%s) = ROW(%s))',
        conrelid::regclass, own.names, confrelid::regclass, own.names, named.names
    )
    FROM pg_constraint
    CROSS JOIN LATERAL (
        SELECT string_agg(format('child.%I', attname), ', ' ORDER BY place) AS names
        FROM unnest(conkey) WITH ORDINALITY AS k (number, place)
        JOIN pg_attribute ON attrelid = conrelid AND attnum = number
    ) AS own
    CROSS JOIN LATERAL (
        SELECT string_agg(format('parent.%I', attname), ', ' ORDER BY place) AS names
        FROM unnest(confkey) WITH ORDINALITY AS k (number, place)
        JOIN pg_attribute ON attrelid = confrelid AND attnum = number
    ) AS named
    WHERE contype = 'f'
"""


class Databases(Protocol):
    """Databases of one kind."""

    def create(self) -> Place:
        """Return a new database without tables."""
        ...

    def remove(self, place: Place) -> None:
        """Remove a database, whoever is still connected to it."""
        ...


class SqliteFiles:
    """Files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def create(self) -> Path:
        """Return where the next file will be."""
        self._count += 1
        return self._folder / f"{self._count}.db"

    def remove(self, place: Place) -> None:
        """Remove a file, and SQLite's own files beside it."""
        assert isinstance(place, Path)
        for each in place.parent.glob(f"{place.name}*"):
            each.unlink()


class PostgresDatabases:
    """Databases of the tests' server, which outlives the killed processes and ends with this one."""

    def __init__(self) -> None:
        self._server = running_server()
        # Copying one is faster than making another.
        self._template: str | None = None

    def create(self) -> SecretStr:
        """Make a database without tables."""
        if self._template is None:
            self._template = self._server.create()
            with psycopg.connect(self._server.url(self._template).get_secret_value()) as connection:
                # PostgreSQL's own check of its files, for `check_whole`.
                connection.execute("CREATE EXTENSION amcheck")
        return self._server.url(self._server.create(template=self._template))

    def remove(self, place: Place) -> None:
        """Remove a database and end its connections."""
        assert isinstance(place, SecretStr)
        self._server.drop(str(conninfo_to_dict(place.get_secret_value())["dbname"]))


def check_whole(place: Place) -> None:
    """Look at every page, index and foreign key of a database.

    Raises AssertionError, or the driver's own error, if anything is damaged.
    """
    if isinstance(place, SecretStr):
        with psycopg.connect(place.get_secret_value(), autocommit=True) as connection:
            # Before the b-trees, of which one that is not valid cannot be looked at.
            for query in (_NOT_VALID, _PAGES):
                found = connection.execute(query).fetchall()
                assert not found, f"damaged: {found}"
            connection.execute(_INDEXES)
            for (orphans,) in connection.execute(_ORPHANS).fetchall():
                assert connection.execute(orphans).fetchone() == (0,), f"a row without its parent: {orphans}"
        return
    with closing(sqlite3.connect(place)) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert file.execute("PRAGMA foreign_key_check").fetchall() == []
