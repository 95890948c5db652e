"""Brings a database up to date: reads its version from Alembic's table and runs the missing revisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect

from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

# The newest revision. Comparing with it spares most starts the import of Alembic, a fifth of a second.
HEAD = max(each.stem[1:5] for each in Path(__file__).parent.glob("versions/v*.py"))
_TABLE = "alembic_version"
VERSION_QUERY = f"SELECT version_num FROM {_TABLE}"  # noqa: S608 - our own constant


async def stored_version(connection: AsyncConnection) -> str | None:
    """Return the version of a database; None if it has no tables yet."""
    return await connection.run_sync(_read_version)


def require_current(found: str | None, place: str) -> None:
    """Raise `StoreError` unless this is the version that this Roomtone needs."""
    if found is not None and found > HEAD:
        raise StoreError(
            Text(
                "A newer Roomtone has made the database {path}: it has version {found}, but this "
                "Roomtone needs version {needed}. Install the newer Roomtone here.",
                path=place,
                found=found.lstrip("0"),
                needed=HEAD.lstrip("0"),
            )
        )
    if found != HEAD:
        raise StoreError(
            Text(
                "The database {path} has version {found}, but this Roomtone needs version {needed}. "
                "Install the same Roomtone everywhere. Then stop the bot and start it: it updates an "
                "older database.",
                path=place,
                found=(found or "0").lstrip("0") or "0",
                needed=HEAD.lstrip("0"),
            )
        )


async def migrate(connection: AsyncConnection, place: str) -> None:
    """Run all missing revisions. `place`: what sentences call the database.

    `connection` must be in a write transaction: a crash then leaves the old version intact. Raises `StoreError`, and
    changes nothing, if the version is unknown.
    """
    await connection.run_sync(_migrate, place)


def _read_version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_TABLE):
        return None
    found = connection.exec_driver_sql(VERSION_QUERY).scalar_one_or_none()
    return None if found is None else str(found)


def _migrate(connection: Connection, place: str) -> None:
    found = _read_version(connection)
    if found == HEAD:
        return
    # Imported here because it is slow.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    # Alembic's options give the percent sign a meaning.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    if found is not None and found not in {
        each.revision for each in ScriptDirectory.from_config(config).walk_revisions()
    }:
        require_current(found, place)
    command.upgrade(config, "head")
