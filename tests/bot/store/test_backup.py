"""A backup is one whole moment of a database in use. A restore puts it back without whoever was forgotten since."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.memory.recall import Recall
from bot.store import backup
from bot.store.backup import (
    BackupError,
    RestoreReport,
    examine_backup,
    remove_leftovers,
    restore_backup,
    write_backup,
)
from bot.store.database import open_database
from bot.store.dialects.sqlite import verify_database_file
from bot.store.forgettings import KEY_FILE
from bot.store.kept_aside import kept_aside
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.servers import OptOutStore
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from compaction.model import SessionId
from tests.bot.evening import GUILD, Evening
from tests.bot.store.damaged import damage
from tests.compaction.turn_store_contract import EVENING, fill
from tests.fakes.clock import FakeClock
from tests.fakes.labelling_summariser import LabellingSummariser

SECRET = "Zanzibar"
NOW = 1_790_000_000.0


def names_in(folder: Path) -> list[str]:
    """Return the names of a folder's files, without the key of who was forgotten."""
    return sorted(each.name for each in folder.iterdir() if each.name != KEY_FILE)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder."""
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir())}


async def restored(file: Path, path: Path, *, regardless: bool = False) -> RestoreReport:
    """Restore a backup."""
    return await restore_backup(file, path, now=NOW, regardless=regardless)


async def forget(evening: Evening, name: str, *, session_id: SessionId | None = None, seq: int | None = None) -> None:
    """Forget a person, or one turn of theirs, as `bot.memory.personal_data` does."""
    forgetter = SpeechForgetter(evening.database, evening.clock)
    (person,) = await forgetter.find(name)
    person = await forgetter.begin(person, session_id=session_id, seq=seq)
    await forgetter.forget(person, session_id=session_id, seq=seq)


async def test_a_backup_is_one_moment_of_a_database_in_use(tmp_path: Path) -> None:
    """Turns that are stored while the backup is written are in it up to one of them, without a gap."""
    path, file = tmp_path / "roomtone.db", tmp_path / "copy.db"
    async with open_database(path) as database:
        store = SqlTurnStore(database, FakeClock())
        await fill(store, 20)
        made, _ = await asyncio.gather(asyncio.to_thread(write_backup, path, file), fill(store, 20, start=20))
    assert made.sessions == 1
    assert 20 <= made.turns <= 40
    assert file.stat().st_mode & 0o777 == 0o600
    assert names_in(tmp_path) == ["copy.db", "roomtone.db"]
    async with open_database(file) as copied:
        assert (await SqlTurnStore(copied, FakeClock()).load(EVENING)).total_turns == made.turns


async def test_a_backup_overwrites_nothing_and_is_never_half(tmp_path: Path) -> None:
    """A file that exists stays as it is, and of a damaged database there is no backup."""
    path, file = tmp_path / "roomtone.db", tmp_path / "letters.txt"
    async with open_database(path) as database:
        await fill(SqlTurnStore(database, FakeClock()), 30)
        file.write_text("Dear Bob, " * 500)
        with pytest.raises(BackupError, match="never overwrites"):
            write_backup(path, file)
        with pytest.raises(BackupError, match="written"):
            write_backup(path, tmp_path / "none" / "copy.db")
    with pytest.raises(BackupError, match="not a backup"):
        examine_backup(file)
    damage(path)
    with pytest.raises((StoreError, BackupError), match="damaged"):
        write_backup(path, tmp_path / "copy.db")
    assert names_in(tmp_path) == ["letters.txt", "roomtone.db"]


async def test_the_restored_session_goes_on(tmp_path: Path) -> None:
    """The session is as it was when the backup was written. The earlier database is kept, and can be restored too."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
        await evening.talk(30)
        write_backup(path, file)
        then = await evening.store.load(evening.session_id)
        await evening.talk(10)
    report = await restored(file, path)
    assert (report.content.sessions, report.content.turns, report.forgotten) == (1, 30, 0)
    assert kept_aside(path) == [report.aside]
    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
    async with Evening(path, clock=evening.clock) as evening:
        assert await evening.store.load(evening.session_id) == then
        await evening.talk(5)
    assert report.aside is not None
    assert (await restore_backup(report.aside, path, now=NOW + 60)).content.turns == 40


async def test_the_forgotten_stay_forgotten(tmp_path: Path) -> None:
    """Who was forgotten after the backup is not in the restored database, not even in its bytes. Everything else is."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening, Evening(path, name="other", clock=evening.clock, channel=702) as other:
        await evening.say(f"I live in {SECRET}.", "Ada")
        await evening.say("The gate code is 4411.", "Bob")
        await evening.talk(60)
        await evening.upkeep.run_once()
        await other.say("The boat is at pier nine.", "Bob")
        await other.say("Nine it is.", "Cleo")
        await forget(evening, "Cleo")
        write_backup(path, file)
        await forget(evening, "Ada")
        await forget(evening, "Bob", session_id=other.session_id, seq=0)
    assert SECRET.encode() in file.read_bytes()
    report = await restored(file, path)
    assert report.forgotten == 2
    assert SECRET.encode() not in path.read_bytes()
    async with Evening(path, clock=evening.clock) as evening:
        recall = Recall(SqlRecallIndex(evening.database, VectorStore(evening.database)), evening.store)
        assert not await recall.search("boat pier")
        assert any("4411" in each.text for each in await recall.search("gate code"))
        assert await SpeechForgetter(evening.database, evening.clock).find("Ada") == ()
    # The list stays: it holds for an older backup too, and for this one if it is restored again.
    assert (await restore_backup(file, path, now=NOW + 60)).forgotten == 2
    assert SECRET.encode() not in path.read_bytes()


async def test_a_backup_of_another_data_folder_takes_over_the_list_of_this_one(tmp_path: Path) -> None:
    """Its own list has another key. It is without the people on that list; those of this folder are forgotten in it."""
    file, path = tmp_path / "copy.db", tmp_path / "here" / "roomtone.db"
    async with Evening(tmp_path / "there" / "roomtone.db") as there:
        for name in ("Ada", "Bob", "Cleo"):
            await there.say(f"I am {name}, of {SECRET}.", name)
        await forget(there, "Cleo")
        write_backup(tmp_path / "there" / "roomtone.db", file)
    async with Evening(path, clock=there.clock) as here:
        await here.say("Hello.", "Ada")
        await forget(here, "Ada")
    assert (await restored(file, path)).forgotten == 1
    async with Evening(path, clock=there.clock) as here:
        assert [each.id for each in await SpeechForgetter(here.database, here.clock).everybody()] == ["id-Bob"]
        # The lists are of this folder's key from then on.
        await forget(here, "Bob")
    (tmp_path / "new").mkdir()
    await restored(file, tmp_path / "new" / "roomtone.db")
    async with Evening(tmp_path / "new" / "roomtone.db", clock=there.clock) as new:
        await forget(new, "Bob")


async def test_deleted_facts_and_opt_outs_stay(tmp_path: Path) -> None:
    """Facts that people deleted do not come back, and who has opted out since stays out."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path, summariser=LabellingSummariser()) as evening:
        await evening.say("I live in Lisbon.", "Ada")
        await evening.talk(75)
        await evening.upkeep.run_once()
        assert await evening.facts.facts_about({"id-Ada"}, GUILD)
        write_backup(path, file)
        await evening.facts.forget("id-Ada", GUILD)
        await OptOutStore(evening.database, evening.clock).put(GUILD, 5, out=True)
    await restored(file, path)
    async with Evening(path, clock=evening.clock) as evening:
        assert await evening.facts.facts_about({"id-Ada"}, GUILD, history=True) == ()
        assert await OptOutStore(evening.database, evening.clock).of(GUILD) == {5}


@pytest.mark.parametrize("fault", ["version", "damaged", "text", "itself", "open", "killed", "full"])
async def test_a_restore_that_fails_changes_nothing(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fault is a sentence, and every file is as it was."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with open_database(path) as database:
        await fill(SqlTurnStore(database, FakeClock()), 30)
        write_backup(path, file)
        # It is made at the first use.
        database.key.person("1001")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    before = contents(path.parent)
    other = sqlite3.connect(path)

    def failing(*_: object) -> None:
        raise OSError(28 if fault == "full" else 5, "No space left" if fault == "full" else "Input/output error")

    expected = {
        "version": "is of version",
        "damaged": "is damaged",
        "text": "is not a backup",
        "itself": "is the present database",
        "open": "Another program",
        "killed": "Input/output error",
        "full": "No space left",
    }
    match fault:
        case "version":
            with closing(sqlite3.connect(file, isolation_level=None)) as connection:
                connection.execute("UPDATE alembic_version SET version_num = '0099'")
        case "damaged":
            damage(file)
        case "text":
            file.write_text("Dear Bob, " * 500)
        case "itself":
            file = path
        case "open":
            monkeypatch.setattr(backup, "WAIT_S", 0.01)
            other.execute("BEGIN IMMEDIATE")
        case _:
            monkeypatch.setattr(backup, "sync_to_disk", failing)
    with closing(other), pytest.raises((BackupError, StoreError), match=expected[fault]):
        await restored(file, path)
    assert contents(path.parent) == before


async def test_an_unreadable_present_database_is_kept_aside_only_if_that_is_wanted(tmp_path: Path) -> None:
    """Nobody knows who was forgotten in it since."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with open_database(path) as database:
        await fill(SqlTurnStore(database, FakeClock()), 30)
        write_backup(path, file)
    damage(path)
    before = path.read_bytes()
    with pytest.raises(BackupError, match="--regardless"):
        await restored(file, path)
    assert path.read_bytes() == before
    report = await restored(file, path, regardless=True)
    assert report.forgotten is None
    assert report.aside is not None
    assert report.aside.read_bytes() == before
    verify_database_file(path)


async def test_what_a_killed_restore_left_is_removed(tmp_path: Path) -> None:
    """Killed before the swap, the old one is there, and what was copied so far is not."""
    path = tmp_path / "roomtone.db"
    async with open_database(path):
        pass
    (tmp_path / "roomtone.db.restoring").touch()
    (tmp_path / "roomtone.db.restoring-wal").touch()
    assert remove_leftovers(path)
    assert names_in(tmp_path) == ["roomtone.db"]
    verify_database_file(path)
    assert not remove_leftovers(path)
