"""The data directory and the database: full, unwritable, damaged, not to be looked at."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from bot.cli.doctor.finding import Status
from bot.cli.doctor.speech_models import check_recogniser
from bot.cli.doctor.storage import check_data_dir, check_database
from bot.settings import StorageSettings
from bot.store.database import open_database
from tests.bot.cli.doctor.findings import is_missing
from voice.asr.settings import AsrSettings


def test_data_directory(tmp_path: Path) -> None:
    """The data directory may be absent if it can be created. Little free space is a warning, and too little is an
    error.
    """
    settings = StorageSettings(data_dir=tmp_path / "a" / "b")
    assert check_data_dir(settings, lambda _: 900_000_000).status is Status.OK
    assert not (tmp_path / "a").exists()
    finding = check_data_dir(settings, lambda _: 400_000_000)
    assert finding.status is Status.WARNING
    assert "400 MB free; 500 are enough" in finding.detail
    assert check_data_dir(settings, lambda _: 1_000_000).status is Status.MISSING
    (tmp_path / "file").touch()
    settings = StorageSettings(data_dir=tmp_path / "file" / "data")
    assert is_missing(check_data_dir(settings), detail="file cannot be written", remedy="set storage.data_dir")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_without_any_room_is_no_matter_of_rights(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe that finds no room at all has the remedy of one that finds little."""
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(code, os.strerror(code))))
    finding = check_data_dir(StorageSettings(data_dir=tmp_path))
    assert is_missing(finding, detail=os.strerror(code), remedy="Free some space, or set storage.data_dir")


@pytest.mark.asyncio
async def test_database(tmp_path: Path) -> None:
    """An absent or valid database passes. A newer one and a file of another kind are errors with a remedy, and no file
    is changed.
    """
    path = tmp_path / "roomtone.db"
    assert check_database(path).status is Status.OK
    assert not path.exists()
    async with open_database(path):
        assert check_database(path).status is Status.OK
    aside = path.with_name(f"{path.name}.before-20261127T043333Z")
    for ending in ("", "-wal"):
        aside.with_name(f"{aside.name}{ending}").touch()
    finding = check_database(path)
    assert finding.status is Status.WARNING
    assert finding.detail.endswith(f"a restore has kept {aside.name}, with all that was said until then")
    assert finding.remedy == "Delete it when all is well."
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '0099'")
    connection.close()
    assert is_missing(check_database(path), detail="is of version 99", remedy="Install the same Roomtone")
    path.write_text("Dear diary, " * 100)
    assert is_missing(check_database(path), detail="is not a database", remedy="Move the file away")


def test_what_may_not_even_be_looked_at_is_a_finding_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that the user may not enter is reported by each check that needs it."""
    locked = tmp_path / "locked"

    def enter(self: Path, **_: bool) -> os.stat_result:
        if self.is_relative_to(locked):
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return stat(self)

    stat = Path.stat
    monkeypatch.setattr(Path, "stat", enter)
    data = check_data_dir(StorageSettings(data_dir=locked / "data"))
    assert is_missing(data, detail="cannot be written: Permission denied", remedy="set storage.data_dir")
    database = check_database(locked / "data" / "roomtone.db")
    assert is_missing(database, detail="cannot be read: Permission denied", remedy="the right to read it")
    for name in ("whisper-base", "mine"):
        recogniser = check_recogniser(AsrSettings.model_validate({"model_dir": locked / name}))
        assert is_missing(recogniser, detail="cannot be read: Permission denied", remedy="the right to read it")
