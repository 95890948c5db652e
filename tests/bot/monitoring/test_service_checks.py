"""The checks of the database and the disk."""

from __future__ import annotations

import asyncio
import shutil
import threading
from functools import partial
from pathlib import Path

import pytest

from bot.health import FaultKind
from bot.monitoring.service_checks import CHECK_EVERY_S, DISK_ANSWERS_S, LEAST_FREE_BYTES, ServiceChecks
from bot.store.database import open_database
from bot.store.sessions import check_writable
from compaction.errors import StoreError
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import wait_out


class FakeStore:
    """A database that can be written until `refuses` is set."""

    refuses = False
    writes = 0

    async def write(self) -> None:
        """Try to write."""
        self.writes += 1
        if self.refuses:
            raise StoreError("/data/roomtone.db cannot be written.")


def kinds(checks: ServiceChecks) -> list[FaultKind]:
    """Return the kinds of the faults."""
    return [fault.kind for fault in checks.faults()]


async def test_a_database_that_refuses_writes_is_a_fault_until_it_takes_them(tmp_path: Path) -> None:
    """The fault tells since when."""
    store = FakeStore()
    checks = ServiceChecks(store.write, tmp_path, clock=FakeClock())
    await checks.check()
    assert checks.faults() == []
    store.refuses = True
    await checks.check()
    assert checks.faults() == [], "once may be an accident"
    await checks.check()
    assert kinds(checks) == [FaultKind.DATABASE]
    assert checks.faults()[0].since == FakeClock().monotonic()
    store.refuses = False
    await checks.check()
    assert checks.faults() == []


async def test_a_disk_with_little_room_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault says how much is left. A disk that does not tell is none."""
    free = LEAST_FREE_BYTES
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 10**12 - free, free))
    checks = ServiceChecks(FakeStore().write, tmp_path, clock=FakeClock())
    await checks.check()
    assert checks.faults() == []
    free = 12_500_000
    await checks.check()
    assert kinds(checks) == [FaultKind.DISK]
    assert "12 MB" in checks.faults()[0].what

    def refuse(_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(shutil, "disk_usage", refuse)
    await checks.check()
    assert checks.faults() == []


@pytest.mark.parametrize("gone", ["data", "data/roomtone.db"])
async def test_a_data_folder_or_a_database_that_is_gone_is_a_fault(tmp_path: Path, gone: str) -> None:
    """The system lets a process write on into its open files where nobody finds them, so the database takes writes."""
    data, folder, moved = tmp_path / "data", tmp_path / gone, tmp_path / "moved"
    data.mkdir()
    async with open_database(data / "roomtone.db") as database:
        checks = ServiceChecks(partial(check_writable, database), data, clock=FakeClock(), database=database.file)
        await checks.check()
        assert checks.faults() == []
        folder.rename(moved)
        await checks.check()
        (fault,) = checks.faults()
        assert fault.kind is FaultKind.DISK
        assert "is gone" in fault.what
        moved.rename(folder)
        await checks.check()
        assert checks.faults() == []


async def test_it_checks_every_few_seconds(tmp_path: Path) -> None:
    """The task checks until its block is left."""
    clock, store = FakeClock(), FakeStore()
    checks = ServiceChecks(store.write, tmp_path, clock=clock)
    async with checks.running():
        await clock.until_somebody_sleeps()
        store.refuses = True
        clock.advance(CHECK_EVERY_S)
        await until(lambda: store.writes == 2 and bool(clock.sleeping))
        assert kinds(checks) == []
        clock.advance(CHECK_EVERY_S)
        await until(lambda: kinds(checks) == [FaultKind.DATABASE])
    assert clock.sleeping == 0


async def test_a_disk_that_does_not_answer_is_a_fault_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other checks go on meanwhile, and no second thread waits for it."""
    answers, asked = threading.Event(), 0

    def disk_usage(_: object) -> object:
        nonlocal asked
        asked += 1
        answers.wait()
        return shutil._ntuple_diskusage(10**12, 0, 10**12)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    store = FakeStore()
    checks = ServiceChecks(store.write, tmp_path, clock=FakeClock())
    try:
        for _ in range(2):
            checking = asyncio.create_task(checks.check())
            await until(lambda: asked == 1)
            await wait_out(monkeypatch, DISK_ANSWERS_S)
            await checking
        assert kinds(checks) == [FaultKind.DISK]
        assert "does not answer" in checks.faults()[0].what
        assert (store.writes, asked) == (2, 1)
    finally:
        answers.set()
    await checks.check()
    assert checks.faults() == []
