"""Writes a backup of a SQLite database into one file, while the bot runs, and checks it.

A backup is a plain database: one moment of the original, without deleted rows and without a journal. It has all that
makes sessions whole. Settings, keys and logs are not in it, models are downloaded again, and sound is never stored.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING

from bot.errors import BotError
from bot.private_files import sync_names, sync_to_disk
from bot.store.dialects.sqlite import SqliteDialect, connect_read_only, require_own_schema
from bot.store.dialects.sqlite_failures import sqlite_failure
from bot.store.migrations.own_schema import foreign_part
from bot.store.migrations.upgrade import HEAD, too_new

if TYPE_CHECKING:
    import sqlite3

# How long to wait for a lock. Readers wait only while another program changes the journal's mode.
_WAIT_S = 5.0
# What SQLite reports of the new file if there is no room for it.
NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")
# Every version has these tables.
_TABLES = {"sessions", "turns"}


class BackupError(BotError):
    """A backup cannot be written or restored; nothing was changed. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class BackupContent:
    """What a backup holds."""

    sessions: int
    turns: int
    size_bytes: int


def write_backup(database: Path, file: Path) -> BackupContent:
    """Write the database at `database` into the new file `file`, with mode 0600, and check it.

    Other processes can read and write the database meanwhile. Raises `BackupError` if `file` exists or cannot be
    written, and `StoreError` if the database cannot be read, or if something in it is not of Roomtone. A failed backup
    leaves no file.
    """
    if file.is_dir():
        raise BackupError(f"{file} is a folder. Name a new file in it, for example {file / 'roomtone-backup.db'}.")
    if file.exists():
        raise _taken(file)
    try:
        # SQLite writes into an empty file, and keeps its mode. A name of its own, because another backup may be written
        # to the same file at the same time.
        descriptor, name = mkstemp(prefix=f"{file.name}.", suffix=".part", dir=file.parent)
    except OSError as error:
        raise _unwritable(file, error) from error
    os.close(descriptor)
    part = Path(name)
    try:
        try:
            with closing(connect_read_only(database, wait_s=_WAIT_S)) as connection:
                # No later restore would take it.
                require_own_schema(connection, database)
                connection.execute("VACUUM INTO ?", (str(part),))
        except SqliteDialect.failures as error:
            if getattr(error, "sqlite_errorname", "").startswith(NO_ROOM):
                raise BackupError(
                    f"The disk is full: {file} cannot be written. Name a file on another disk."
                ) from error
            raise sqlite_failure(error, database) from error
        content = examine_backup(part)
        try:
            sync_to_disk(part)
            _name(part, file)
            sync_names(file.parent)
        except FileExistsError as error:
            raise _taken(file) from error
        except OSError as error:
            raise _unwritable(file, error) from error
    finally:
        with suppress(OSError):
            part.unlink()
    return content


def _name(part: Path, file: Path) -> None:
    """Give a written backup its name. Raises `OSError`: `FileExistsError` if another file has got it meanwhile."""
    try:
        os.link(part, file)
    except FileExistsError:
        raise
    except OSError:
        # The file system has no links.
        if file.exists():
            raise FileExistsError from None
        part.rename(file)


def require_file(file: Path) -> None:
    """Raise `BackupError` if there is no such file."""
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise BackupError(f"{file} {what}. Name a file that `roomtone backup` wrote.")


def require_own_backup(connection: sqlite3.Connection, file: Path) -> None:
    """Raise `BackupError` if a backup has a trigger, view, table or index that Roomtone does not make like this.

    `connection`: to it, or to a copy of it. Raises `StoreError` if it is of a newer version, and `sqlite3.Error`.
    """
    if (foreign := foreign_part(connection)) is not None:
        raise BackupError(
            f"{foreign.sentence(file)} Take another backup. If you made the change yourself, undo it with "
            f"`sqlite3 {file}` first. Nothing was changed."
        )


def examine_backup(file: Path) -> BackupContent:
    """Check the schema and every page of a backup and count what it holds.

    Raises `BackupError` if it is damaged, is none, or has something that is not of Roomtone, and `StoreError` if it
    cannot be read or is of a newer version.
    """
    require_file(file)
    try:
        with closing(connect_read_only(file, wait_s=_WAIT_S)) as connection:
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            if not tables >= _TABLES or not version:
                raise BackupError(f"{file} is not a backup of Roomtone. Name a file that `roomtone backup` wrote.")
            if version > int(HEAD):
                raise too_new(str(version))
            # First: checking the pages already calls the functions that a table names.
            require_own_backup(connection, file)
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            # SQLite takes a value of any kind for an id.
            odd_id = "SELECT 1 FROM sessions WHERE typeof(id) <> 'text'"
            if verdict != "ok" or connection.execute(odd_id).fetchone() is not None:
                raise BackupError(f"{file} is damaged. Take another backup.")
            (sessions,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
            (turns,) = connection.execute("SELECT count(*) FROM turns").fetchone()
        return BackupContent(sessions, turns, file.stat().st_size)
    except UnicodeDecodeError as error:
        raise BackupError(f"{file} is damaged. Take another backup.") from error
    except SqliteDialect.failures as error:
        code = getattr(error, "sqlite_errorname", "")
        if code.startswith("SQLITE_CORRUPT"):
            raise BackupError(f"{file} is damaged. Take another backup.") from error
        if code == "SQLITE_NOTADB":
            raise BackupError(
                f"{file} is not a backup of Roomtone. Name a file that `roomtone backup` wrote."
            ) from error
        raise sqlite_failure(error, file) from error


def _taken(file: Path) -> BackupError:
    return BackupError(f"There is a {file} already. Name a new file: a backup never overwrites another.")


def _unwritable(file: Path, error: OSError) -> BackupError:
    reason = error.strerror or type(error).__name__
    return BackupError(f"{file} cannot be written: {reason}. Name a file in a folder that you may write to.")
