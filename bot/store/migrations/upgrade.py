"""Brings a database up to date: reads its version and runs the missing steps.

Alembic keeps the version in the table `alembic_version`. Before Alembic a SQLite database had it in `user_version`;
such a database is taken over as it is. `user_version` is still written, so that a Roomtone of that time refuses a newer
database.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect

from bot.store.migrations import postgresql
from bot.texts.text import Text, joined
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

VERSIONS = Path(__file__).parent / "versions"
# The newest step. Comparing with it spares most starts the import of Alembic, a fifth of a second.
HEAD = "0020"
# The last step that `user_version` alone may stand for.
_LAST_BEFORE_ALEMBIC = 13
_TABLE = "alembic_version"

NOT_CURRENT = Text(
    "The database is of version {found}, and this Roomtone needs version {needed}. Only the bot itself brings it up to "
    "date, when it starts. Install the same Roomtone on every machine, stop the bot, and start it."
)
CRASHED = Text("If the bot has crashed, PostgreSQL notices within half a minute: start it again then.")


async def migrate(connection: AsyncConnection, *, folders: Sequence[Path] = (VERSIONS,)) -> None:
    """Run all missing steps. `folders`: where they are.

    `connection` must be in a write transaction: a crash then leaves the old version intact. Raises `StoreError`, and
    changes nothing, if a newer Roomtone wrote the database.
    """
    await connection.run_sync(_migrate, folders)


def _read_version(connection: Connection) -> str | None:
    """Return the version of a database, None for an empty one."""
    if inspect(connection).has_table(_TABLE):
        query = f"SELECT version_num FROM {_TABLE}"  # noqa: S608 - our own constant
        stored = connection.exec_driver_sql(query).scalar_one_or_none()
        return None if stored is None else str(stored)
    if connection.dialect.name != "sqlite":
        return None
    number = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    if number > _LAST_BEFORE_ALEMBIC:
        raise too_new(str(number))
    return f"{number:04d}" if number else None


async def has_tables(connection: AsyncConnection) -> bool:
    """Return whether any version of Roomtone has made its tables in the database.

    Raises `StoreError` if that is a newer one of which SQLite's mark alone tells.
    """
    return await connection.run_sync(_read_version) is not None


async def is_current(connection: AsyncConnection) -> bool:
    """Return whether the database is exactly of this Roomtone's version. Raises `StoreError` as `has_tables` does."""
    return await connection.run_sync(_read_version) == HEAD


async def require_current(connection: AsyncConnection) -> None:
    """Raise `StoreError` unless the database is exactly of this Roomtone's version. Changes nothing."""
    found = await connection.run_sync(_read_version)
    if found != HEAD:
        problem = NOT_CURRENT.fill(found=(found or "0").lstrip("0") or "0", needed=HEAD.lstrip("0"))
        raise StoreError(joined((problem, CRASHED)) if connection.dialect.name == "postgresql" else problem)


def too_new(version: str) -> StoreError:
    return StoreError(
        f"The database is of version {version.lstrip('0')}, and this Roomtone knows only {HEAD.lstrip('0')}: a newer "
        "one wrote it. Install a later Roomtone, or restore a backup of before its update. There is no way back from a "
        "newer version."
    )


def _migrate(connection: Connection, folders: Sequence[Path]) -> None:
    version = _read_version(connection)
    if version == HEAD and tuple(folders) == (VERSIONS,) and inspect(connection).has_table(_TABLE):
        return
    _run_steps(connection, folders, version, "head")


def make_tables(connection: Connection, version: str) -> None:
    """Make the tables of an earlier or this version in an empty database."""
    _run_steps(connection, (VERSIONS,), None, version)


def _run_steps(connection: Connection, folders: Sequence[Path], version: str | None, target: str) -> None:
    # Imported here because it is slow.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    # Alembic's options give the percent sign a meaning, and separate folders by new lines if told so.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", "\n".join(map(str, folders)).replace("%", "%%"))
    config.attributes["connection"] = connection
    scripts = ScriptDirectory.from_config(config)
    if version is not None and version not in {each.revision for each in scripts.walk_revisions()}:
        raise too_new(version)
    if connection.dialect.name == "postgresql":
        # One statement may take as long as the whole migration may.
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        if version is None:
            for statement in postgresql.STATEMENTS:
                connection.exec_driver_sql(statement)
            version = postgresql.FIRST
    if version is not None and not inspect(connection).has_table(_TABLE):
        command.stamp(config, version)
    command.upgrade(config, target)
