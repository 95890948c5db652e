"""Writes a backup of a SQLite database into one file, while the bot runs, and puts it back.

A backup is a plain database: one moment of the original, without deleted rows and without a journal. It has all that
makes sessions whole. Settings, keys and logs are not in it, models are downloaded again, and sound is never stored.

To restore it, it is copied beside the database. The list of who was forgotten (`bot.store.forgettings`) is taken over
from the present database: the people that the backup does not know as forgotten are forgotten in the copy. So are the
facts that people deleted of themselves, and who has opted out stays out. Only then the copy takes the place of the
database, in one step of the file system; a failure or a kill before that leaves all as it was. The present database is
kept aside (`bot.store.kept_aside`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkstemp

from sqlalchemy import delete, select

from bot.clock import SystemClock
from bot.errors import BotError
from bot.private_files import make_private_folder, open_private, sync_names, sync_to_disk
from bot.store.database import open_database
from bot.store.dialects.sqlite import SqliteDialect, connect_read_only
from bot.store.dialects.sqlite_sql import sqlite_failure
from bot.store.forgettings import Forgetting, forgettings_after, last_forgetting, people_among
from bot.store.migrations.upgrade import HEAD, VERSION_QUERY
from bot.store.own_rows import COUNTED, forget_own_rows, owners_of_rows
from bot.store.prompts import people_named
from bot.store.speakers import StoredSpeaker
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.tables import forgettings, hearing_opt_outs
from compaction.errors import StoreError

# How long to wait for a lock. Readers wait only while another program changes the journal's mode.
WAIT_S = 5.0
_FAILURES: tuple[type[BaseException], ...] = (UnicodeDecodeError, *SqliteDialect.failures)
# What SQLite reports of the new file if there is no room for it.
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")
# Copies within this one's name are removed at the next restore or start if a restore was killed.
_MARK = ".restoring"
ASIDE = ".before-"
JOURNALS = ("-wal", "-shm", "-journal")
# What people decided since the backup. A fact that was drawn from turns before `through_seq` was deleted.
_DECIDED_SINCE = (
    "INSERT OR REPLACE INTO main.hearing_opt_outs SELECT * FROM present.hearing_opt_outs",
    """
    INSERT OR REPLACE INTO main.person_forgets SELECT * FROM present.person_forgets
    WHERE session_id IN (SELECT id FROM main.sessions)
    """,
    """
    DELETE FROM main.person_facts WHERE EXISTS (
        SELECT 1 FROM main.person_forgets AS f WHERE f.session_id = person_facts.session_id
        AND f.person_id = person_facts.person_id AND f.through_seq > person_facts.turn_seq
    )
    """,
    # What was told or deleted since is over.
    *(
        f"DELETE FROM main.{name} WHERE id NOT IN (SELECT id FROM present.{name}) "  # noqa: S608 - our own names
        f"AND id <= (SELECT coalesce(max(seq), 0) FROM present.sqlite_sequence WHERE name = '{name}')"
        for name in COUNTED
    ),
    # What Discord has is still to be deleted there, or made anew.
    "INSERT OR REPLACE INTO main.posted_transcripts SELECT * FROM present.posted_transcripts",
    "INSERT OR REPLACE INTO main.search_marks SELECT * FROM present.search_marks WHERE name = 'forgetting_key'",
    """
    INSERT INTO main.forgettings SELECT * FROM present.forgettings
    WHERE number > (SELECT coalesce(max(number), 0) FROM main.forgettings)
    """,
)


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
        with closing(connect_read_only(database, wait_s=WAIT_S)) as connection:
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
        with closing(connect_read_only(file, wait_s=WAIT_S)) as connection:
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


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored. `aside`: the earlier database; None: there was none. `forgotten`: how many people were
    forgotten in it; None if that is not known.
    """

    content: BackupContent
    aside: Path | None
    forgotten: int | None


async def restore_backup(file: Path, path: Path, *, now: float, regardless: bool = False) -> RestoreReport:
    """Restore the backup `file` as the database at `path`. The caller holds the folder's lock, so no bot runs.

    `now`: UTC epoch seconds, for the name of the earlier database. `regardless`: also if the present database cannot be
    read, and with it who was forgotten since. Raises `BackupError` or `StoreError`, and then leaves all as it was.
    """
    remove_leftovers(path)
    staged = path.with_name(f"{path.name}{_MARK}")
    try:
        await asyncio.to_thread(_stage, file, path, staged)
        known = await _last_forgetting(staged)
        forgotten = None
        if await asyncio.to_thread(_is_settled, path, regardless=regardless):
            await asyncio.to_thread(_take_decisions, staged, path)
            forgotten = await _forget_since(staged, known)
        async with open_database(staged) as database:
            await database.wipe()
        await asyncio.to_thread(without_journal, staged)
        content = await asyncio.to_thread(examine_backup, staged)
        aside = await asyncio.to_thread(_swap, staged, path, now)
    except (OSError, sqlite3.Error) as error:
        raise sqlite_failure(error, path) from error
    finally:
        remove_leftovers(path)
    return RestoreReport(content, aside, forgotten)


def remove_leftovers(path: Path) -> bool:
    """Remove what a killed restore has left beside the database at `path`. The caller holds the lock.

    Returns whether it was killed before the backup took the database's place: then the database is as it was.
    """
    unfinished = path.with_name(f"{path.name}{_MARK}").exists()
    for left in path.parent.glob(f"{path.name}{_MARK}*"):
        with suppress(OSError):
            left.unlink()
    return unfinished


def _stage(file: Path, path: Path, staged: Path) -> None:
    """Copy the backup into `staged` after it was checked."""
    if path.exists() and file.exists() and file.samefile(path):
        raise BackupError(f"{file} is the present database itself. Name a file that `roomtone backup` wrote.")
    if (version := examine_backup(file).version) != HEAD:
        raise BackupError(
            f"{file} is of version {version}, and this Roomtone needs {HEAD}. Restore it with the Roomtone that wrote "
            "it. Nothing was changed."
        )
    make_private_folder(path.parent)
    os.close(open_private(str(staged), os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC))
    with (
        closing(connect_read_only(file, wait_s=WAIT_S)) as source,
        closing(sqlite3.connect(staged, isolation_level=None)) as target,
    ):
        source.backup(target)


async def _last_forgetting(staged: Path) -> int:
    """Return the number of the last forgetting that the copy knows.

    A backup of another data folder has a list that this folder's key cannot read. It is without the people on it, so
    it is dropped.
    """
    async with open_database(staged) as database, database.writing() as connection:
        if not await database.key.is_of(connection):
            await connection.execute(delete(forgettings))
            await database.key.adopt(connection)
        return await last_forgetting(connection)


def _is_settled(path: Path, *, regardless: bool) -> bool:
    """Take the journal of the present database into its file, and return whether there is one that can be read.

    Raises `BackupError` if it cannot, unless that is accepted, or if another program has it open.
    """
    if not path.exists():
        return False
    try:
        without_journal(path)
        if (version := examine_backup(path).version) != HEAD:
            raise BackupError(f"It is of version {version}, and this Roomtone needs {HEAD}.")
    except (BackupError, StoreError, sqlite3.Error, OSError) as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise BackupError(
                f"Another program has {path} open: a bot, another command or `sqlite3`. Stop it, then restore. "
                "Nothing was changed."
            ) from error
        if not regardless:
            raise BackupError(
                f"The present database cannot be read, so nobody knows who has used /forget-me since the backup: "
                f"{error} `roomtone restore --regardless` restores all the same and keeps {path.name} aside. Then "
                "whoever was forgotten since must be forgotten again, with `roomtone memory forget`. Nothing was "
                "changed."
            ) from error
        return False
    return True


def without_journal(path: Path) -> None:
    """Take the journal into the file, so that the file is all there is. Raises `sqlite3.Error` if it is in use."""
    with closing(sqlite3.connect(path, timeout=WAIT_S, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        connection.execute("BEGIN EXCLUSIVE")


def _take_decisions(staged: Path, present: Path) -> None:
    with closing(sqlite3.connect(staged, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("ATTACH ? AS present", (str(present),))
        connection.execute("BEGIN IMMEDIATE")
        for statement in _DECIDED_SINCE:
            connection.execute(statement)
        connection.execute("COMMIT")


async def _forget_since(staged: Path, known: int) -> int:
    """Forget in the copy who was forgotten since it was written. Returns how many people that were."""
    async with open_database(staged) as database:
        forgetter = SpeechForgetter(database, SystemClock())
        async with database.reading() as connection:
            since = await forgettings_after(connection, known)
        people = {person.id: person for person in await forgetter.everybody()} if since else {}
        found: dict[str, list[Forgetting]] = people_among(since, people, database.key)
        for person_id, wanted in found.items():
            for each in wanted:
                await forgetter.forget(people[person_id], session_id=each.session_id, seq=each.seq)
        async with database.reading() as connection:
            # Somebody may have been there and said nothing.
            silent = await owners_of_rows(connection) | await people_named(connection)
        there = people_among([each for each in since if each.seq is None], silent, database.key)
        for person_id, each in ((person_id, each) for person_id, wanted in there.items() for each in wanted):
            await forgetter.forget(StoredSpeaker(person_id, (), 0.0, 0, ()), session_id=each.session_id)
        async with database.writing() as connection:
            for out in (await connection.execute(select(hearing_opt_outs))).all():
                await forget_own_rows(connection, str(out.person_id), guild_id=out.guild_id)
    return len(found)


def _swap(staged: Path, path: Path, now: float) -> Path | None:
    """Put `staged` in the place of `path`, and return where the earlier database is now. Raises `OSError`."""
    sync_to_disk(staged)
    aside = None
    if path.exists():
        aside = path.with_name(f"{path.name}{ASIDE}{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}")
        # A copy, so that there is a database at every moment.
        part = path.with_name(f"{path.name}{_MARK}-aside")
        with path.open("rb") as source, open(part, "xb", opener=open_private) as target:
            shutil.copyfileobj(source, target)
        sync_to_disk(part)
        part.rename(aside)
        for ending in JOURNALS:
            # Only a database that could not be read still has one. It must not be applied to the restored one.
            journal = path.with_name(f"{path.name}{ending}")
            if journal.exists():
                journal.rename(aside.with_name(f"{aside.name}{ending}"))
    staged.replace(path)
    sync_names(path.parent)
    return aside
