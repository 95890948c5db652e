"""A backup is one whole moment of a database that is written meanwhile."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bot.store.backup import BackupContent, BackupError, examine_backup, write_backup
from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from tests.compaction.turn_store_contract import EVENING, fill
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
async def test_a_backup_leaves_the_files_of_others_alone(tmp_path: Path) -> None:
    """In a shared folder somebody has a file whose name is like that of an unfinished backup."""
    path, file = tmp_path / "roomtone.db", tmp_path / "copy.db"
    theirs = tmp_path / "copy.db.part"
    theirs.touch(mode=0o666)
    async with open_database(path):
        write_backup(path, file)
    assert theirs.read_bytes() == b""
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.asyncio
@pytest.mark.parametrize("has_links", [True, False], ids=["links", "no links"])
async def test_of_two_backups_to_one_file_the_first_that_ends_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
) -> None:
    """The other is told that there is a file. Neither writes into what the other has written, also where the file
    system has no links.
    """
    path, file = tmp_path / "roomtone.db", tmp_path / "copy.db"

    def meanwhile(part: Path) -> BackupContent:
        monkeypatch.undo()
        if not has_links:
            monkeypatch.setattr(os, "link", refused)
        write_backup(path, file)
        return examine_backup(part)

    async with open_database(path) as database:
        await fill(SqlTurnStore(database, FakeClock()), 3)
        monkeypatch.setattr("bot.store.backup.examine_backup", meanwhile)
        with pytest.raises(BackupError, match="never overwrites"):
            write_backup(path, file)
    assert examine_backup(file).turns == 3
    assert names_in(tmp_path) == ["copy.db", "roomtone.db"]


@pytest.mark.asyncio
async def test_a_backup_and_its_name_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power failure just after the command leaves the whole backup under its name."""
    path, file = tmp_path / "roomtone.db", tmp_path / "copy.db"
    async with open_database(path):
        synced: list[tuple[int, bool]] = []
        monkeypatch.setattr(os, "fsync", lambda number: synced.append((os.fstat(number).st_ino, file.exists())))
        write_backup(path, file)
    assert synced == [(file.stat().st_ino, False), (file.parent.stat().st_ino, True)]


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_backup_is_one_moment_of_a_database_in_use(tmp_path: Path) -> None:
    """Turns that are stored while the backup is written are in it up to one of them, without a gap."""
    path, file = tmp_path / "roomtone.db", tmp_path / "copy.db"
    async with open_database(path) as database:
        store = SqlTurnStore(database, FakeClock())
        await fill(store, 50)
        made, _ = await asyncio.gather(asyncio.to_thread(write_backup, path, file), fill(store, 50, start=50))
        assert (await store.load(EVENING)).total_turns == 100
    assert made.sessions == 1
    assert 50 <= made.turns <= 100
    assert file.stat().st_mode & 0o777 == 0o600
    assert names_in(tmp_path) == ["copy.db", "roomtone.db"]
    async with open_database(file) as copied:
        memory = await SqlTurnStore(copied, FakeClock()).load(EVENING)
        assert memory.total_turns == made.turns


@pytest.mark.asyncio
async def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    """A file that exists is left as it is, and so is a folder that does not."""
    path, file = tmp_path / "roomtone.db", tmp_path / "letters.txt"
    async with open_database(path):
        file.write_text("Dear Bob")
        with pytest.raises(BackupError, match="never overwrites"):
            write_backup(path, file)
        with pytest.raises(BackupError, match="cannot be written: No such file or directory"):
            write_backup(path, tmp_path / "none" / "copy.db")
        with pytest.raises(BackupError, match="cannot be written: Not a directory"):
            write_backup(path, file / "copy.db")
        with pytest.raises(BackupError, match="is a folder"):
            write_backup(path, tmp_path)
    assert file.read_text() == "Dear Bob"


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_damaged_database_makes_no_backup(tmp_path: Path) -> None:
    """Nobody takes a file for a backup that was made of a damaged database."""
    path, file = tmp_path / "roomtone.db", tmp_path / "copy.db"
    async with open_database(path) as database:
        await fill(SqlTurnStore(database, FakeClock()), 300)
    damage(path)
    with pytest.raises((StoreError, BackupError), match="is damaged"):
        write_backup(path, file)
    assert names_in(tmp_path) == ["roomtone.db"]


def test_other_files_are_no_backups(tmp_path: Path) -> None:
    """Neither a text nor another program's database is taken for a backup."""
    text, other = tmp_path / "letter.txt", tmp_path / "other.db"
    text.write_text("Dear Bob, " * 500)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE songs (name)")
    for file in (text, other):
        with pytest.raises(BackupError, match="is not a backup of Roomtone"):
            examine_backup(file)
    with pytest.raises(BackupError, match=r"none.db does not exist"):
        examine_backup(tmp_path / "none.db")


def refused(source: Path, name: Path) -> None:
    """Make no link, as a file system that has none."""
    raise PermissionError(1, "Operation not permitted")


def names_in(folder: Path) -> list[str]:
    """Return the names of a folder's files."""
    return sorted(each.name for each in folder.iterdir())


def damage(path: Path) -> None:
    """Overwrite a page in the last part of a database."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'turns'").fetchone()[0]
    with path.open("r+b") as file:
        file.seek(page_bytes * (root - 1))
        file.write(b"\xff" * page_bytes)
