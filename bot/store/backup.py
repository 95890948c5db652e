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

from bot.errors import BotError
from bot.private_files import sync_names, sync_to_disk
from bot.store.dialects.sqlite import SqliteDialect, connect_read_only
from bot.store.dialects.sqlite_sql import sqlite_failure
from bot.store.migrations.upgrade import VERSION_QUERY

# How long to wait for a lock. Readers wait only while another program changes the journal's mode.
_WAIT_S = 5.0
_FAILURES: tuple[type[BaseException], ...] = (UnicodeDecodeError, *SqliteDialect.failures)
# What SQLite reports of the new file if there is no room for it.
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")


class BackupError(BotError):
    """A backup cannot be written or restored; nothing was changed. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class BackupContent:
    """What a backup holds. `version`: that of its schema."""

    sessions: int
    turns: int
    size_bytes: int
    version: str


def write_backup(database: Path, file: Path) -> BackupContent:
    """Write the database at `database` into the new file `file`, with mode 0600, and check it.

    Other processes can read and write the database meanwhile. Raises `BackupError` if `file` exists or cannot be
    written, and `StoreError` if the database cannot be read. A failed backup leaves no file.
    """
    if file.exists():
        raise BackupError(f"There is a {file} already. Name a new file: a backup never overwrites another.")
    try:
        # SQLite writes into an empty file, and keeps its mode.
        descriptor, name = mkstemp(prefix=f"{file.name}.", suffix=".part", dir=file.parent)
        os.close(descriptor)
    except OSError as error:
        raise _unwritable(file, error) from error
    part = Path(name)
    try:
        with closing(connect_read_only(database, wait_s=_WAIT_S)) as connection:
            connection.execute("VACUUM INTO ?", (name,))
        content = examine_backup(part)
        sync_to_disk(part)
        part.rename(file)
        sync_names(file.parent)
    except OSError as error:
        raise _unwritable(file, error) from error
    except SqliteDialect.failures as error:
        if getattr(error, "sqlite_errorname", "").startswith(_NO_ROOM):
            raise BackupError(f"The disk is full: {file} cannot be written. Name a file on another disk.") from error
        raise sqlite_failure(error, database) from error
    finally:
        with suppress(OSError):
            part.unlink()
    return content


def examine_backup(file: Path) -> BackupContent:
    """Check every page of a backup and count what it holds. Raises `BackupError` if it is damaged or is none."""
    if not file.is_file():
        raise BackupError(f"{file} is not a file. Name a file that `roomtone backup` wrote.")
    try:
        with closing(connect_read_only(file, wait_s=_WAIT_S)) as connection:
            (version,) = connection.execute(VERSION_QUERY).fetchone()
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise BackupError(f"{file} is damaged. Take another backup.")
            (sessions,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
            (turns,) = connection.execute("SELECT count(*) FROM turns").fetchone()
        return BackupContent(sessions, turns, file.stat().st_size, str(version))
    except _FAILURES as error:
        code = getattr(error, "sqlite_errorname", "")
        if code.startswith("SQLITE_CORRUPT") or isinstance(error, UnicodeDecodeError):
            raise BackupError(f"{file} is damaged. Take another backup.") from error
        if code in ("SQLITE_NOTADB", "SQLITE_ERROR"):
            raise BackupError(
                f"{file} is not a backup of Roomtone. Name a file that `roomtone backup` wrote."
            ) from error
        raise sqlite_failure(error, file) from error


def _unwritable(file: Path, error: OSError) -> BackupError:
    reason = error.strerror or type(error).__name__
    return BackupError(f"{file} cannot be written: {reason}. Name a file in a folder that you may write to.")
