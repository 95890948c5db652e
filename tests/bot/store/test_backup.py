"""A backup is one whole moment of a database that is written meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bot.store.backup import BackupError, examine_backup, write_backup
from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from tests.compaction.turn_store_contract import EVENING, fill
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
async def test_a_backup_is_written_into_nobody_elses_file(tmp_path: Path) -> None:
    """In a shared folder somebody has made the file that a backup is first written into, and holds it open."""
    path, file = tmp_path / "roomtone.db", tmp_path / "copy.db"
    theirs = tmp_path / "copy.db.part"
    theirs.touch(mode=0o666)
    async with open_database(path):
        with theirs.open("rb") as held:
            write_backup(path, file)
            assert held.read() == b""
    assert file.stat().st_mode & 0o777 == 0o600


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
