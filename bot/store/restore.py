"""Puts a backup in the place of the SQLite database, after everything about it has been checked.

The backup is copied beside the database, brought up to date, and gets what was forgotten since (`restore_merge`). It
may be from anybody, so a part of its schema that is not Roomtone's is refused, in the copy, before and after the
upgrade: a trigger would act in every step and in every later write. Only then it takes the place of the present
database, in one step of the file system; before that step a failure or a kill leaves all as it was. The present
database is kept aside. While it is looked at, other programs cannot write to it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bot.private_files import make_private_folder, open_private, sync_names, sync_to_disk
from bot.store.backup import NO_ROOM, BackupContent, BackupError, examine_backup, require_own_backup
from bot.store.database import open_database
from bot.store.dialects.sqlite import SqliteDialect, connect_read_only
from bot.store.dialects.sqlite_failures import sqlite_failure
from bot.store.migrations.upgrade import HEAD
from bot.store.restore_merge import MergedSessions, merge_newer_decisions
from bot.store.search.indexing import catch_up
from bot.store.wiping import wipe_deleted
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Copies within this one's name are removed at the next restore or start if a restore was killed.
_MARK = ".restoring"
_ASIDE = ".before-"
# How long to wait for other programs to close the present database.
_WAIT_S = 5.0
_JOURNALS = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored. `aside`: the earlier database; None: there was none. `carried`: None if what was forgotten
    since the backup is not known. `again`: an earlier restore was killed before it had changed anything.
    """

    content: BackupContent
    aside: Path | None
    carried: MergedSessions | None
    again: bool = False


async def restore_backup(file: Path, path: Path, *, now: float, regardless: bool = False) -> RestoreReport:
    """Restore the backup `file` as the database at `path`. The caller holds the folder's lock, so no bot runs.

    `now`: UTC epoch seconds, for the name of the earlier database. `regardless`: also if the present database cannot be
    read, and with it who was forgotten since. Raises `BackupError` or `StoreError`, and then leaves all as it was.
    """
    await asyncio.to_thread(_examine, file, path)
    again = remove_leftovers(path)
    staged, copy = path.with_name(f"{path.name}{_MARK}"), path.with_name(f"{path.name}{_MARK}-present")
    try:
        await asyncio.to_thread(_copy_database, file, staged)
        with _held(path, regardless=regardless) as present:
            carried = None
            # The file may have been exchanged since it was examined. The copy is ours alone.
            await asyncio.to_thread(_require_own, staged, file)
            await _upgrade(staged)
            await asyncio.to_thread(_require_own, staged, file)
            if present is not None:
                await asyncio.to_thread(_backup_into, present, copy, path)
                await _upgrade(copy)
                await asyncio.to_thread(_sole, copy)
                carried = await asyncio.to_thread(_merge, staged, copy)
            async with open_database(staged) as database:
                await catch_up(database)
                await wipe_deleted(database)
            await asyncio.to_thread(_sole, staged)
            content = await asyncio.to_thread(examine_backup, staged)
            aside = await asyncio.to_thread(_swap, staged, path, now)
    except OSError as error:
        raise sqlite_failure(error, path) from error
    finally:
        remove_leftovers(path)
    return RestoreReport(content, aside, carried, again)


def kept_aside(path: Path) -> list[Path]:
    """Return the databases that restores have kept beside the one at `path`. They have what was deleted since."""
    found = sorted(path.parent.glob(f"{path.name}{_ASIDE}*"))
    return [each for each in found if not each.name.endswith(_JOURNALS)]


async def _upgrade(path: Path) -> None:
    """Bring a database to this version. Raises `StoreError`."""
    async with open_database(path):
        pass


def remove_leftovers(path: Path) -> bool:
    """Remove what a killed restore has left beside the database at `path`. The caller holds the lock.

    Returns whether it was killed before the backup took the database's place: then the database is as it was.
    """
    unfinished = path.with_name(f"{path.name}{_MARK}").exists()
    with suppress(OSError):
        for aside in path.parent.glob(f"{path.name}{_ASIDE}*"):
            if path.exists() and aside.samefile(path):
                _undo_aside(aside, path)
    for left in path.parent.glob(f"{path.name}{_MARK}*"):
        with suppress(OSError):
            left.unlink()
    return unfinished


def _undo_aside(aside: Path, path: Path) -> None:
    """Take the database's second name away, after its journal has its own name again. Raises `OSError`."""
    for ending in _JOURNALS:
        journal = aside.with_name(f"{aside.name}{ending}")
        if journal.exists():
            journal.rename(path.with_name(f"{path.name}{ending}"))
    aside.unlink()


def _examine(file: Path, path: Path) -> None:
    if path.exists() and file.exists() and file.samefile(path):
        raise BackupError(f"{file} is the present database itself. Name a file that `roomtone backup` wrote.")
    examine_backup(file)
    make_private_folder(path.parent)


@contextmanager
def _held(path: Path, *, regardless: bool) -> Iterator[sqlite3.Connection | None]:
    """Keep other programs from the database at `path`, and yield a connection to it; None if there is none or it cannot
    be read. Its journal is part of the file from then on.
    """
    if not path.exists():
        yield None
        return
    present: sqlite3.Connection | None = None
    with ExitStack() as stack:
        try:
            connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
            stack.enter_context(closing(connection))
            _exclude_others(connection)
            present = connection
        except SqliteDialect.failures as error:
            if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise BackupError(
                    f"Another program has {path} open: a bot, another command or `sqlite3`. Stop it, then restore. "
                    "Nothing was changed."
                ) from error
            _accept_unreadable(sqlite_failure(error, path), path, regardless=regardless)
        except (BackupError, StoreError) as error:
            _accept_unreadable(error, path, regardless=regardless)
        yield present


def _exclude_others(connection: sqlite3.Connection) -> None:
    # Only who is alone with the database can take its journal in.
    connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone()
    connection.execute("BEGIN EXCLUSIVE")
    # The lock stays with the connection. In a transaction it could not be copied.
    connection.execute("COMMIT")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > int(HEAD):
        raise StoreError(f"It is of version {version}, and this Roomtone knows only {int(HEAD)}.")
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise StoreError("It is damaged.")


def _accept_unreadable(error: Exception, path: Path, *, regardless: bool) -> None:
    if not regardless:
        raise BackupError(
            f"The present database cannot be read, so nobody knows who has used /forget-me since the backup: {error} "
            f"`roomtone restore --regardless` restores all the same and keeps {path.name} aside. Then whoever was "
            "forgotten since must be forgotten again, with `roomtone memory forget`. Nothing was changed."
        ) from error


def _copy_database(file: Path, target: Path) -> None:
    try:
        with closing(connect_read_only(file, wait_s=_WAIT_S)) as source:
            _backup_into(source, target, file)
    except SqliteDialect.failures as error:
        raise sqlite_failure(error, target) from error


def _require_own(staged: Path, file: Path) -> None:
    try:
        with closing(connect_read_only(staged, wait_s=_WAIT_S)) as connection:
            require_own_backup(connection, file)
    except SqliteDialect.failures as error:
        raise sqlite_failure(error, file) from error


def _backup_into(source: sqlite3.Connection, target: Path, origin: Path) -> None:
    """Copy the database of `source`, which is the file `origin`, into `target`. Raises `StoreError`."""
    try:
        os.close(open_private(str(target), os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC))
        with closing(sqlite3.connect(target, isolation_level=None)) as connection:
            source.backup(connection)
    except SqliteDialect.failures as error:
        # `origin` is only read, and may lie on another disk. Only the file that is made is opened without SQLite.
        of_target = isinstance(error, OSError) or getattr(error, "sqlite_errorname", "").startswith(NO_ROOM)
        raise sqlite_failure(error, target if of_target else origin) from error


def _merge(staged: Path, present: Path) -> MergedSessions:
    try:
        return merge_newer_decisions(staged, present)
    except SqliteDialect.failures as error:
        raise sqlite_failure(error, staged) from error


def _sole(path: Path) -> None:
    """Take the journal into the file, so that the file is all there is."""
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    except SqliteDialect.failures as error:
        raise sqlite_failure(error, path) from error


def _swap(staged: Path, path: Path, now: float) -> Path | None:
    """Put `staged` in the place of `path`, and return where the earlier database is now. Raises `OSError`."""
    sync_to_disk(staged)
    aside = None
    if path.exists():
        aside = path.with_name(f"{path.name}{_ASIDE}{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}")
        _keep(path, aside)
        for ending in _JOURNALS:
            # Only a database that could not be read still has one. It must not be applied to the restored one.
            journal = path.with_name(f"{path.name}{ending}")
            if journal.exists():
                journal.rename(aside.with_name(f"{aside.name}{ending}"))
    staged.replace(path)
    sync_names(path.parent)
    return aside


def _keep(path: Path, aside: Path) -> None:
    """Give the file a second name, or copy it where the file system has no links."""
    try:
        os.link(path, aside)
    except FileExistsError:
        raise
    except OSError:
        part = path.with_name(f"{path.name}{_MARK}-aside")
        with path.open("rb") as source, open(part, "xb", opener=open_private) as target:
            shutil.copyfileobj(source, target)
        part.rename(aside)
