"""Restoring a backup: the session goes on, the forgotten stay forgotten, and a failure changes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from bot.memory.recall import Recall
from bot.store import restore
from bot.store.backup import BackupError, write_backup
from bot.store.database import open_database
from bot.store.guilds import OptOutStore
from bot.store.migrations.upgrade import HEAD
from bot.store.prompts import PromptStore
from bot.store.restore import RestoreReport, restore_backup
from bot.store.restore_merge import MergedSessions
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.sessions import Sessions
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.turns import SqlTurnStore
from compaction.errors import StoreError
from compaction.model import Seq, SessionId
from compaction.payload import text_digest
from tests.bot.evening import GUILD, Evening
from tests.bot.store.test_backup import damage
from tests.bot.store.test_older_databases import write_old_database
from tests.compaction.turn_store_contract import EVENING
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

    from bot.clock import Clock
    from bot.store.database import Database

pytestmark = pytest.mark.slow

SECRET = "Zanzibar"
NOW = 1_790_000_000.0


async def restored(file: Path, path: Path, *, regardless: bool = False) -> RestoreReport:
    """Restore a backup."""
    return await restore_backup(file, path, now=NOW, regardless=regardless)


async def forget(database: Database, clock: Clock, name: str) -> None:
    """Forget everything of a person."""
    forgetter = SpeechForgetter(database, clock)
    (person,) = await forgetter.find(name)
    await forgetter.forget(person)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder."""
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir())}


@pytest.mark.asyncio
async def test_the_restored_session_goes_on(tmp_path: Path) -> None:
    """The session is as it was when the backup was written, and goes on from there. The earlier database is kept."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
        await evening.talk(80)
        write_backup(path, file)
        then = await evening.store.load(evening.session_id)
        await evening.talk(10)
    report = await restored(file, path)
    assert (report.content.sessions, report.content.turns) == (1, 80)
    assert report.aside is not None
    assert sorted(each.name for each in path.parent.iterdir()) == ["roomtone.db", report.aside.name]
    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
    async with Evening(path, clock=evening.clock) as evening:
        assert await evening.store.load(evening.session_id) == then
        await evening.talk(5)
        assert (await evening.store.load(evening.session_id)).total_turns == 85
    # What was kept aside can be restored like a backup.
    report = await restore_backup(report.aside, path, now=NOW + 60)
    assert report.content.turns == 90


@pytest.mark.asyncio
async def test_the_forgotten_stay_forgotten(tmp_path: Path) -> None:
    """A person who was forgotten after the backup is not in the restored database, not even in its bytes. Everything
    else is, and is found.
    """
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening, Evening(path, name="other", clock=evening.clock, channel=702) as other:
        await evening.say(f"I live in {SECRET}.", "Ada")
        await evening.say("The gate code is 4411.", "Bob")
        await evening.talk(75)
        await evening.upkeep.run_once()
        await other.say("The boat is at pier nine.", "Bob")
        write_backup(path, file)
        await evening.talk(10)
        await forget(evening.database, evening.clock, "Ada")
        now = await evening.store.load(evening.session_id)
    assert SECRET.encode() in file.read_bytes()
    report = await restored(file, path)
    assert report.carried is not None
    assert report.carried.taken == 1
    assert SECRET.encode() not in path.read_bytes()
    async with Evening(path, clock=evening.clock) as evening:
        # The forgotten session is as it is at present.
        assert await evening.store.load(evening.session_id) == now
        assert await evening.people.facts_about(GUILD, "id-Ada") == ()
        recall = Recall(SqlRecallIndex(evening.database, VectorStore(evening.database)), evening.store)
        assert not [each for each in await recall.search(SECRET) if SECRET in each.text]
        assert any("4411" in each.text for each in await recall.search("gate code"))
        assert any("pier" in each.text for each in await recall.search("boat pier"))
        assert await SpeechForgetter(evening.database, evening.clock).find("Ada") == ()


@pytest.mark.asyncio
async def test_a_forgotten_session_that_is_gone_is_left_out(tmp_path: Path) -> None:
    """Nothing can say any more which words of it were forgotten."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
        await evening.say(f"I live in {SECRET}.", "Ada")
        write_backup(path, file)
        await forget(evening.database, evening.clock, "Ada")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM sessions")
    report = await restored(file, path)
    assert report.carried is not None
    assert (report.carried.taken, report.carried.left_out) == (0, 1)
    assert report.content.sessions == 0
    assert SECRET.encode() not in path.read_bytes()


@pytest.mark.asyncio
async def test_what_was_forgotten_before_the_backup_comes_from_the_backup(tmp_path: Path) -> None:
    """A backup that knows of more forgetting than the present database is restored as it is."""
    path, early, late = tmp_path / "data" / "roomtone.db", tmp_path / "early.db", tmp_path / "late.db"
    async with Evening(path) as evening:
        await evening.say(f"I live in {SECRET}.", "Ada")
        await evening.say("The gate code is 4411.", "Bob")
        write_backup(path, early)
        await forget(evening.database, evening.clock, "Ada")
        await evening.say("Nine it is.", "Bob")
        write_backup(path, late)
    # As on a machine that was set up from an old image.
    path.unlink()
    early.rename(path)
    report = await restored(late, path)
    assert (report.carried, report.content.turns) == (MergedSessions(), 3)
    assert SECRET.encode() not in path.read_bytes()


@pytest.mark.asyncio
async def test_who_was_forgotten_after_the_clock_was_set_back_stays_forgotten(tmp_path: Path) -> None:
    """Somebody was forgotten before the backup and somebody after it, by a clock that was set right in between."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
        await evening.say(f"I live in {SECRET}.", "Ada")
        await evening.say("The gate code is 4411.", "Bob")
        await forget(evening.database, evening.clock, "Bob")
        write_backup(path, file)
        evening.clock.advance(-3_600.0)
        await forget(evening.database, evening.clock, "Ada")
    assert SECRET.encode() in file.read_bytes()
    await restored(file, path)
    assert SECRET.encode() not in path.read_bytes()


@pytest.mark.asyncio
async def test_facts_and_choices_that_were_changed_since_stay_changed(tmp_path: Path) -> None:
    """Deleted facts do not come back, and who has opted out since stays out."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
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
        assert (await evening.store.turns(evening.session_id, Seq(0), Seq(1)))[0].parts[0].text == "I live in Lisbon."


@pytest.mark.asyncio
async def test_prompts_come_back_with_the_sessions_that_were_sent_them(tmp_path: Path) -> None:
    """Those of the backup, and of a session that is taken over. One that was deleted since, because it names somebody
    who was forgotten, does not.
    """
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    both, old, new, naming = "Both.", "Until the backup.", "Since the backup.", "Be kind to Ada."
    async with Evening(path) as evening, Evening(path, name="other", clock=evening.clock, channel=702) as other:
        await evening.say("Hello.", "Ada")
        await evening.prompts.store_prompts(evening.session_id, [both, naming], sent_at=1.0)
        await other.say("Hello.", "Bob")
        await other.prompts.store_prompts(other.session_id, [both, naming], sent_at=1.0)
        await Sessions(other.database, other.clock).open(
            guild_id=GUILD, channel_id=703, resume_within_s=0.0, session_id=SessionId("gone")
        )
        await other.prompts.store_prompts(SessionId("gone"), [old], sent_at=1.0)
        write_backup(path, file)
        await Sessions(other.database, other.clock).delete(SessionId("gone"))
        await evening.prompts.store_prompts(evening.session_id, [new], sent_at=2.0)
        await forget(evening.database, evening.clock, "Ada")
    await restored(file, path)
    async with open_database(path) as database:
        found = await PromptStore(database).prompts_by_digest(map(text_digest, (both, old, new, naming)))
        assert set(found.values()) == {both, old, new}
        sent = await database.rows("SELECT session_id, count(*) FROM sent_prompts GROUP BY session_id ORDER BY 1")
        assert sent == [("evening", 2), ("gone", 1), ("other", 1)]


@pytest.mark.asyncio
async def test_who_was_heard_between_two_opt_outs_has_opted_out_by_the_later(tmp_path: Path) -> None:
    """What they said in between may be in a session that is taken over from the present database."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
        opt_outs = OptOutStore(evening.database, evening.clock)
        await opt_outs.put(GUILD, 5, out=True)
        write_backup(path, file)
        evening.clock.advance(60.0)
        await opt_outs.put(GUILD, 5, out=False)
        await opt_outs.put(GUILD, 5, out=True)
        out_at = evening.clock.now()
    await restored(file, path)
    async with open_database(path) as database:
        assert await database.rows("SELECT since FROM hearing_opt_outs") == [(out_at,)]


@pytest.mark.parametrize("version", [1, 8, 13])
@pytest.mark.asyncio
async def test_an_older_backup_is_brought_up_to_date(tmp_path: Path, version: int) -> None:
    """A copy that an earlier version wrote is migrated; the file itself stays as it is."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "old.db"
    write_old_database(file, version)
    before = file.read_bytes()
    report = await restored(file, path)
    assert (report.aside, report.carried, report.content.turns) == (None, None, 63)
    assert file.read_bytes() == before
    async with open_database(path) as database:
        assert (await SqlTurnStore(database, FakeClock()).load(EVENING)).total_turns == 63


@pytest.mark.asyncio
async def test_an_older_present_database_is_read_too(tmp_path: Path) -> None:
    """The present database may be older than this Roomtone, after an update that was never started."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "old.db"
    path.parent.mkdir()
    write_old_database(path, 12)
    write_old_database(file, 13)
    report = await restored(file, path)
    assert report.carried == MergedSessions()


@pytest.mark.parametrize("fault", ["newer", "damaged", "text", "ids", "itself", "open", "killed", "full"])
@pytest.mark.asyncio
async def test_a_restore_that_fails_changes_nothing(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fault is a sentence, and every file is as it was."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
        await evening.talk(40)
        write_backup(path, file)
        await evening.talk(10)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    before = contents(path.parent)
    other = None
    expected = ""
    match fault:
        case "newer":
            with closing(sqlite3.connect(file)) as connection:
                connection.execute(f"PRAGMA user_version = {int(HEAD) + 1}")
            expected = "a newer one wrote it"
        case "damaged":
            damage(file)
            expected = "is damaged"
        case "text":
            file.write_text("Dear Bob, " * 500)
            expected = "is not a backup"
        case "ids":
            with closing(sqlite3.connect(file, isolation_level=None)) as connection:
                connection.execute("INSERT INTO sessions (id, started_at) VALUES (x'00ff', 1)")
            expected = "is damaged"
        case "itself":
            file = path
            expected = "is the present database itself"
        case "open":
            monkeypatch.setattr(restore, "_WAIT_S", 0.01)
            other = sqlite3.connect(path)
            other.execute("BEGIN IMMEDIATE")
            expected = "Another program has"
        case "killed":
            monkeypatch.setattr(restore, "_swap", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
            expected = "Input/output error"
        case "full":
            monkeypatch.setattr(restore, "_keep", _no_room)
            expected = "No space left"
    with pytest.raises((BackupError, StoreError), match=expected):
        await restored(file, path)
    if other is not None:
        other.close()
    assert contents(path.parent) == before


def _no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.asyncio
async def test_no_room_for_the_copy_names_the_disk_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the data folder. The backup is only read, and may lie on a disk with room."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
        await evening.talk(40)
        write_backup(path, file)
    connect = sqlite3.connect

    def with_little_room(place: str | Path, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(place, **options)
        if str(place).endswith(".restoring"):
            connection.execute("PRAGMA max_page_count = 2")
        return connection

    monkeypatch.setattr(sqlite3, "connect", with_little_room)
    with pytest.raises(StoreError, match=r"^The disk is full, so nothing more can be stored in \S+/data/roomtone\.db"):
        await restored(file, path)


@pytest.mark.asyncio
async def test_a_copy_that_cannot_be_made_names_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the system says of it: the backup is only read."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
        await evening.talk(1)
        write_backup(path, file)
    monkeypatch.setattr(restore, "open_private", _no_room)
    with pytest.raises(StoreError, match=r"/data/roomtone\.db\S* cannot be used: No space left"):
        await restored(file, path)


@pytest.mark.asyncio
async def test_a_present_database_that_cannot_be_read_needs_a_word(tmp_path: Path) -> None:
    """Without it nobody knows who was forgotten, so the owner decides. The damaged file and its journal are kept."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
        await evening.talk(40)
        write_backup(path, file)
        await evening.talk(100)
    damage(path)
    path.with_name("roomtone.db-wal").write_bytes(b"rubbish")
    before = path.read_bytes()
    with pytest.raises(BackupError, match=r"nobody knows who has used /forget-me since .* --regardless"):
        await restored(file, path)
    assert path.read_bytes() == before
    report = await restored(file, path, regardless=True)
    assert report.carried is None
    assert report.aside is not None
    assert report.aside.read_bytes() == before
    assert not path.with_name("roomtone.db-wal").exists()
    async with open_database(path) as database:
        assert (await SqlTurnStore(database, FakeClock()).load(evening.session_id)).total_turns == 40


@pytest.mark.asyncio
async def test_a_present_database_that_cannot_be_opened_is_a_sentence(tmp_path: Path) -> None:
    """It may be another user's; a folder in its place cannot be opened either."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with open_database(tmp_path / "other.db"):
        write_backup(tmp_path / "other.db", file)
    path.mkdir(parents=True)
    with pytest.raises(BackupError, match=r"nobody knows .* cannot be opened\. .* --regardless"):
        await restored(file, path)
    with pytest.raises(StoreError, match="Is a directory"):
        await restored(file, path, regardless=True)
    assert [each.name for each in path.parent.iterdir()] == ["roomtone.db"]


@pytest.mark.asyncio
async def test_a_backup_with_a_flipped_bit_is_restored(tmp_path: Path) -> None:
    """What is still readable of it comes back, also where words were forgotten since."""
    path, file = tmp_path / "data" / "roomtone.db", tmp_path / "copy.db"
    async with Evening(path) as evening:
        await evening.talk(10)
        write_backup(path, file)
        await forget(evening.database, evening.clock, "Bob")
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("INSERT INTO sessions (id, started_at) VALUES (CAST(x'61ff' AS TEXT), 1)")
        connection.execute("UPDATE turns SET parts = CAST(parts || x'ff' AS TEXT) WHERE seq = 3")
    report = await restored(file, path)
    assert report.content.sessions == 2
    assert report.carried == MergedSessions(taken=1)
