"""Chooses the dialect by the place: a file is SQLite's, a URL is PostgreSQL's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bot.store.dialects.sqlite import SqliteDialect
from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from types import ModuleType

    from pydantic import SecretStr

    from bot.store.dialects.port import DatabaseDescription, Dialect
    from bot.store.dialects.sqlite import Synchronous


def open_dialect(place: Path | SecretStr, *, synchronous: Synchronous, busy_timeout_s: float) -> Dialect:
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
                "ROOMTONE_DATABASE_URL names a PostgreSQL database, and the library for it is not installed. In the "
                "checkout, run `make setup`, or `uv tool install '.[piper,postgres]'`; or remove the variable to use "
                "the embedded database."
            )
        ) from exc
    return postgresql
