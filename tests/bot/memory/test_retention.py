"""Retention deletes old sessions of every kind, old log lines, and the bytes of both from the whole data folder."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import time
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

import pytest
from sqlalchemy import select
from structlog.typing import EventDict

from bot.background_task import background_task
from bot.logs.log_file import drop_lines_before, forget_in_logs, log_path
from bot.memory.retention import DAY_S, RETRY_S, Retention
from bot.private_files import open_private
from bot.server_settings import ServerSettings, no_server_settings
from bot.shards import Shards, whole
from bot.store.backup import write_backup
from bot.store.database import Database, open_database
from bot.store.tables import sessions
from compaction.errors import StoreError
from compaction.model import Note, NoteId, SessionId
from compaction.settings import TierSettings
from tests.bot.conftest import Place
from tests.bot.evening import GUILD, HERE, Evening
from tests.fakes.clock import FakeClock
from tests.fakes.labelling_summariser import LabellingSummariser

SECRET = "Quillfeather"


def bytes_in(folder: Path) -> bytes:
    """Return the bytes of all files below a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


async def an_evening(path: Place, name: str, clock: FakeClock, *, turns: int = 65, end: bool = True) -> None:
    """Store an evening in which a secret was told; unless `end`, it is left open as by a crash."""
    async with Evening(path, name=name, clock=clock, summariser=LabellingSummariser()) as evening:
        await evening.say(f"I live in {SECRET}ton with my aunt {SECRET}.")
        await evening.timeline.add_note(
            Note(NoteId("map"), clock.now(), "Ada", f"A map of {SECRET}.", person_id="id-Ada")
        )
        await evening.talk(turns)
        await evening.upkeep.run_once()
        if end:
            await evening.timeline.end()


async def test_no_byte_of_an_old_session_stays(tmp_path: Path) -> None:
    """Short, long and crashed sessions are deleted 30 days after their last turn. Their bytes are gone while the
    database is still open. A later session stays.
    """
    path, clock = tmp_path / "roomtone.db", FakeClock()
    await an_evening(path, "short", clock, turns=1)
    await an_evening(path, "crashed", clock, turns=1, end=False)
    await an_evening(path, "long", clock, turns=75)
    clock.advance(20 * DAY_S)
    async with Evening(path, name="later", clock=clock) as later:
        await later.say("The gate code is 4411.", "Bob")
        retention = Retention(later.database, TierSettings(), clock=clock, people=later.people)
        await later.people.prime(GUILD, ["id-Ada"])
        assert (await retention.enforce()).sessions == ()
        assert SECRET.encode() in bytes_in(tmp_path)
        # As a restore leaves one.
        write_backup(path, tmp_path / "roomtone.db.before-20260101T000000Z")
        clock.advance(11 * DAY_S)
        done = await retention.enforce()
        assert set(done.sessions) == {SessionId(name) for name in ("short", "crashed", "long")}
        assert done.wiped
        left = bytes_in(tmp_path).lower()
        assert SECRET.lower().encode() not in left
        assert b"gate code" in left
        assert later.people.section(HERE, [("id-Ada", "Ada")]) == ()
        assert await later.people.facts_about(GUILD, "id-Ada") == ()


@pytest.mark.parametrize(("days", "stays"), [(30, [True, False]), (0, [True, True])])
async def test_a_copy_that_cannot_be_read_goes_when_all_of_it_is_too_old(
    tmp_path: Path, days: int, stays: list[bool]
) -> None:
    """Whoever put it aside can still save what is in it until then."""
    path, clock = tmp_path / "roomtone.db", FakeClock()
    damaged = tmp_path / "roomtone.db.before-20260101T000000Z"
    async with open_database(path) as database:
        retention = Retention(database, TierSettings(retention_days=days), clock=clock)
        found = []
        for age_days in (29, 31):
            damaged.write_bytes(b"no database")
            os.utime(damaged, times=(clock.now() - age_days * DAY_S,) * 2)
            await retention.enforce()
            found.append(damaged.exists())
        assert found == stays


async def test_open_sessions_of_other_processes_stay(place: Place) -> None:
    """Sessions are deleted by the process that serves their server: only that knows whether an open one goes on."""
    path, clock = place, FakeClock()
    await an_evening(path, "open", clock, turns=1, end=False)
    await an_evening(path, "ended", clock, turns=1)
    clock.advance(40 * DAY_S)
    theirs = whole(2).of(GUILD)
    async with open_database(path) as database:
        other = Retention(database, TierSettings(), clock=clock, shards=Shards((1 - theirs,), 2))
        assert (await other.enforce()).sessions == ()
        own = Retention(database, TierSettings(), clock=clock, shards=Shards((theirs,), 2))
        assert set((await own.enforce()).sessions) == {SessionId("open"), SessionId("ended")}


@pytest.mark.parametrize(
    ("operators", "theirs", "stays"), [(0, None, True), (0, 10, False), (30, 10, False), (10, 30, False)]
)
async def test_a_server_chooses_a_shorter_time_and_never_a_longer_one(
    file: Path, operators: int, theirs: int | None, stays: bool
) -> None:
    """What was said on a server is deleted after the shorter of both times; other servers keep the operator's."""
    path, clock = file, FakeClock()
    await an_evening(path, "old", clock, turns=1)
    clock.advance(20 * DAY_S)
    servers = no_server_settings()
    await servers.change(GUILD, lambda _: ServerSettings(retention_days=theirs), by=1)
    await servers.change(GUILD + 1, lambda _: ServerSettings(retention_days=1), by=1)
    async with open_database(path) as database:
        retention = Retention(database, TierSettings(retention_days=operators), clock=clock, servers=servers)
        done = await retention.enforce()
    assert done.sessions == (() if stays else (SessionId("old"),))


async def test_sessions_of_open_rooms_and_without_limit_stay(file: Path) -> None:
    """The session of an open room is kept however long nobody speaks. With 0 days, everything is kept."""
    path, clock = file, FakeClock()
    await an_evening(path, "open", clock, turns=1, end=False)
    clock.advance(400 * DAY_S)
    async with open_database(path) as database:
        kept = Retention(database, TierSettings(), clock=clock, in_use={SessionId("open")})
        assert (await kept.enforce()).sessions == ()
        assert (await Retention(database, TierSettings(retention_days=0), clock=clock).enforce()).sessions == ()
        assert (await Retention(database, TierSettings(), clock=clock).enforce()).sessions == (SessionId("open"),)


async def test_it_works_at_the_start_and_daily(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure, or while another program reads what was deleted, it is tried again in an hour."""
    clock = FakeClock()
    tries: list[float] = []

    async def wipe(_database: Database) -> bool:
        tries.append(clock.monotonic())
        if len(tries) == 1:
            raise StoreError("The disk is full.")
        return len(tries) > 2

    monkeypatch.setattr(Database, "wipe", wipe)
    pauses = (RETRY_S, RETRY_S, DAY_S, DAY_S)
    async with (
        open_database(tmp_path / "a.db") as database,
        background_task(Retention(database, TierSettings(), clock=clock).run(), name="retention"),
    ):
        for seconds in pauses:
            await clock.until_somebody_sleeps()
            clock.advance(seconds)
            await asyncio.sleep(0)
        await clock.until_somebody_sleeps()
    assert tries == [0.0, *accumulate(pauses)]


@pytest.mark.parametrize(("apart_s", "left"), [(60.0, 0), (-400 * DAY_S, 1), (400 * DAY_S, 1), (None, 1)])
async def test_nothing_is_deleted_before_discord_has_told_the_time(
    tmp_path: Path, apart_s: float | None, left: int
) -> None:
    """This machine's clock may be years ahead, and Discord may not answer yet."""
    path, clock = tmp_path / "a.db", FakeClock()
    await an_evening(path, "old", clock, turns=1)
    clock.advance(40 * DAY_S)

    async def told() -> float:
        if apart_s is None:
            raise OSError("Discord did not tell the time.")
        return clock.now() + apart_s

    async with open_database(path) as database:
        retention = Retention(database, TierSettings(), clock=clock, server_time=told)
        async with background_task(retention.run(), name="retention"):
            await clock.until_somebody_sleeps()
        assert len(await database.rows(select(sessions))) == left


async def test_logs_are_kept_as_long_as_sessions(tmp_path: Path) -> None:
    """Log lines go after the retention time too, and with 0 days they stay. A file that was changed stays private."""
    clock = FakeClock()
    clock.advance(60 * DAY_S)
    log = log_path(tmp_path)
    log.parent.mkdir()
    old, new = a_line(clock.now() - 31 * DAY_S, SECRET), a_line(clock.now() - 29 * DAY_S, "new")
    log.write_text(old + new, "utf-8")
    log.chmod(0o644)
    async with open_database(tmp_path / "roomtone.db") as database:
        for days, left in ((0.0, old + new), (30.0, new)):
            settings = TierSettings(retention_days=days)
            done = await Retention(database, settings, clock=clock, log_folder=log.parent).enforce()
            assert done.log_lines == int(left == new)
            assert log.read_text("utf-8") == left
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


async def test_a_reading_program_does_not_hide_what_was_left(tmp_path: Path) -> None:
    """If another connection reads, so that the journal cannot be truncated, the result says so."""
    async with open_database(tmp_path / "a.db", busy_timeout_s=0.05) as database:
        async with database.reading() as reader:
            await reader.exec_driver_sql("SELECT count(*) FROM turns")
            async with database.writing() as connection:
                await connection.exec_driver_sql("INSERT INTO tier_opt_outs VALUES ('guild', '1')")
            assert not (await Retention(database, TierSettings(), clock=FakeClock()).enforce()).wiped
        assert (await Retention(database, TierSettings(), clock=FakeClock()).enforce()).wiped


def unreadable(path: Path) -> None:
    """Put something at a path that nobody can read as a file, whoever runs the test."""
    path.mkdir()


async def test_a_log_that_fails_does_not_switch_off_the_shorter_times(
    file: Path, tmp_path: Path, logs: list[EventDict]
) -> None:
    """What servers chose is deleted, and the other log files are changed, before the failure is raised."""
    clock = FakeClock()
    await an_evening(file, "old", clock, turns=1)
    clock.advance(40 * DAY_S)
    await an_evening(file, "later", clock, turns=1)
    clock.advance(20 * DAY_S)
    log = log_path(tmp_path / "data")
    log.parent.mkdir(parents=True)
    unreadable(log)
    other = log.with_name(f"{log.name}.1")
    new = a_line(clock.now(), "new")
    other.write_text(a_line(clock.now() - 31 * DAY_S, SECRET) + new, "utf-8")
    servers = no_server_settings()
    await servers.change(GUILD, lambda _: ServerSettings(retention_days=10), by=1)
    async with open_database(file) as database:
        retention = Retention(database, TierSettings(), clock=clock, servers=servers, log_folder=log.parent)
        with pytest.raises(IsADirectoryError):
            await retention.enforce()
        async with database.reading() as connection:
            assert (await connection.scalars(select(sessions.c.id))).all() == []
        async with background_task(retention.run(), name="retention-under-test"):
            await clock.until_somebody_sleeps()
        assert [each["retry_s"] for each in logs if each["event"] == "retention_failed"] == [RETRY_S]
    assert other.read_text("utf-8") == new


def a_line(at: float, text: str) -> str:
    """Return a log line as it stands in the file."""
    return json.dumps({"timestamp": datetime.fromtimestamp(at, UTC).isoformat(), "event": "said", "text": text}) + "\n"


def test_old_log_lines_are_deleted(tmp_path: Path) -> None:
    """Lines before the time go from all log files, with what belongs to them. Later lines stay, and a file without old
    lines is not touched.
    """
    log = log_path(tmp_path)
    log.parent.mkdir()
    log.with_name(log.name + ".1").write_text(a_line(1.0, SECRET) + a_line(5.0, SECRET), "utf-8")
    log.write_text(a_line(8.0, SECRET) + f"of it: {SECRET}\n" + a_line(10.0, "new") + "of that\n" + a_line(9.0, "x"))
    assert drop_lines_before(log.parent, 10.0) == 4
    assert log.read_text("utf-8") == a_line(10.0, "new") + "of that\n" + a_line(9.0, "x")
    assert SECRET.encode() not in bytes_in(tmp_path)
    inode = log.stat().st_ino
    assert drop_lines_before(log.parent, 10.0) == 0
    assert log.stat().st_ino == inode
    assert sorted(path.name for path in log.parent.iterdir()) == [log.name, log.name + ".1"]


def test_a_full_disk_gets_no_half_of_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be written anew stays as it is, and what was written of the new one is removed."""
    log = log_path(tmp_path)
    log.parent.mkdir()
    whole_log = a_line(1.0, "old") + a_line(11.0, "new")
    log.write_text(whole_log, "utf-8")

    def full(_new: Path, _target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="space"):
        drop_lines_before(log.parent, 10.0)
    assert log.read_text("utf-8") == whole_log
    assert [path.name for path in log.parent.iterdir()] == [log.name]


def test_what_a_killed_process_left_of_a_log_is_removed(tmp_path: Path) -> None:
    """Its lines would otherwise stay for as long as the folder, whoever is forgotten. A file that another process may
    be writing stays.
    """
    log = log_path(tmp_path)
    log.parent.mkdir()
    log.write_text(a_line(11.0, "new"), "utf-8")
    left, written = (log.with_name(f"{log.name}{ending}") for ending in (".3.new", ".new"))
    for path in (left, written):
        path.write_text(a_line(11.0, SECRET), "utf-8")
    hours_ago = time.time() - 2 * 3600.0
    os.utime(left, (hours_ago, hours_ago))
    assert forget_in_logs(log.parent, SECRET) == 0
    assert sorted(path.name for path in log.parent.iterdir()) == [log.name, written.name]


def test_lines_that_others_write_meanwhile_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a file is replaced, one process still writes to the old file and another one already to the new file. Both
    lines stay, and whole.
    """
    log = log_path(tmp_path)
    log.parent.mkdir()
    log.write_text(a_line(1.0, SECRET) + a_line(10.0, "kept"), "utf-8")
    late, early = a_line(11.0, "to the old file"), a_line(12.0, "to the new file")
    replace = Path.replace

    def replaced_while_others_write(new: Path, target: Path) -> Path:
        with log.open("a", encoding="utf-8") as old:
            old.write(late)
        done = replace(new, target)
        with log.open("a", encoding="utf-8") as other:
            other.write(early)
        return done

    monkeypatch.setattr(Path, "replace", replaced_while_others_write)
    assert drop_lines_before(log.parent, 10.0) == 1
    assert sorted(log.read_text("utf-8").splitlines(keepends=True)) == sorted((a_line(10.0, "kept"), late, early))


def rotated(log: Path, newest: str) -> None:
    """Do as a process that logs: move all log files on by one number, and begin a new log."""
    for number in range(4, 0, -1):
        if (older := log.with_name(f"{log.name}.{number}")).exists():
            older.rename(log.with_name(f"{log.name}.{number + 1}"))
    log.rename(log.with_name(f"{log.name}.1"))
    log.write_text(newest, "utf-8")


def texts_in(*files: Path) -> list[str]:
    return [json.loads(line)["text"] for file in files for line in file.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("at_file", [1, 2])
def test_a_rotation_meanwhile_hides_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_file: int) -> None:
    """While a file is written anew, another process rotates the log. Nothing of the new log is lost, and the forgotten
    words leave the files under their next names too.
    """
    log = log_path(tmp_path)
    log.parent.mkdir()
    older = log.with_name(f"{log.name}.1")
    oldest = log.with_name(f"{log.name}.2")
    older.write_text(a_line(10.0, SECRET) + a_line(11.0, "old"), "utf-8")
    log.write_text(a_line(12.0, SECRET) + a_line(13.0, "log"), "utf-8")
    opened: list[str] = []

    def open_and_rotate(path: str, flags: int) -> int:
        opened.append(path)
        if len(opened) == at_file:
            rotated(log, a_line(14.0, "newest"))
        return open_private(path, flags)

    monkeypatch.setattr("bot.logs.log_file.open_private", open_and_rotate)
    assert forget_in_logs(log.parent, SECRET) == 2
    assert texts_in(oldest, older, log) == ["old", "log", "newest"]
    assert sorted(path.name for path in log.parent.iterdir()) == [log.name, older.name, oldest.name]
