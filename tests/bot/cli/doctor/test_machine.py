"""The data directory, the database and the web port: full, unwritable, damaged, taken."""

from __future__ import annotations

import errno
import os
import socket
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from bot.cli.doctor.finding import Finding, Status
from bot.cli.doctor.machine import check_data_dir, check_database, check_env_file, check_web_port
from bot.settings import StorageSettings, WebSettings
from bot.store.database import open_database


def assert_missing(finding: Finding, detail: str, remedy: str) -> None:
    """Assert that a finding keeps the bot from running, with these words."""
    assert (finding.status, detail in finding.detail, remedy in finding.remedy) == (Status.MISSING, True, True)


def test_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data directory may be absent if it can be created. Little free space is a warning, and too little is an
    error.
    """
    settings = StorageSettings(data_dir=tmp_path / "a" / "b")
    free = SimpleNamespace(free=900_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: free)
    assert check_data_dir(settings).status is Status.OK
    assert not (tmp_path / "a").exists()
    free.free = 200_000_000
    finding = check_data_dir(settings)
    assert finding.status is Status.WARNING
    assert "200 MB free; 300 are enough" in finding.detail
    free.free = 1_000_000
    assert check_data_dir(settings).status is Status.MISSING
    (tmp_path / "file").touch()
    settings = StorageSettings(data_dir=tmp_path / "file" / "data")
    assert_missing(check_data_dir(settings), "file cannot be written", "set storage.data_dir")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_without_any_room_is_no_matter_of_rights(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe that finds no room at all has the remedy of one that finds little."""
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(code, os.strerror(code))))
    finding = check_data_dir(StorageSettings(data_dir=tmp_path))
    assert_missing(finding, os.strerror(code), "Free some space, or set storage.data_dir")


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o604, 0o644, 0o622])
def test_a_file_with_keys_that_others_can_read_is_named(tmp_path: Path, mode: int) -> None:
    """With what to type. Keys that only their owner can read, or in no file, are in order."""
    file = tmp_path / ".env"
    assert check_env_file(file).status is Status.OK
    file.write_text("DISCORD_TOKEN=x\n", "utf-8")
    file.chmod(mode)
    finding = check_env_file(file)
    if not mode & 0o077:
        assert finding.status is Status.OK
        return
    assert (finding.status, finding.remedy) == (Status.WARNING, f"Run `chmod 600 {file}`.")
    assert f"{mode:04o}" in finding.detail


async def test_database(tmp_path: Path) -> None:
    """An absent or valid database passes. A newer one and a file of another kind are errors with a remedy, and no file
    is changed.
    """
    path = tmp_path / "roomtone.db"
    assert check_database(path).status is Status.OK
    assert not path.exists()
    async with open_database(path):
        assert check_database(path).status is Status.OK
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '0099'")
    connection.close()
    assert_missing(check_database(path), "version 99", "Install the newer Roomtone")
    path.write_text("Dear diary, " * 100)
    assert_missing(check_database(path), "is not a database", "Move the file away")


def test_web_port() -> None:
    """A port that another program has is a warning: the bot talks without its pages. A bot that runs has its own."""
    free = check_web_port(WebSettings(port=0), bot_runs=False)
    assert (free.status, free.detail) == (Status.OK, "any free one on 127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as other:
        web = WebSettings(port=other.getsockname()[1])
        taken, own = check_web_port(web, bot_runs=False), check_web_port(web, bot_runs=True)
    assert taken.status is Status.WARNING
    assert "choose another web.host or web.port" in taken.remedy
    assert own.status is Status.OK


@pytest.mark.parametrize("host", ["192.0.2.1", "a" * 64])
def test_a_web_host_that_is_not_this_machine(host: str) -> None:
    """Whatever is wrong with it, the finding names it."""
    finding = check_web_port(WebSettings(host=host), bot_runs=True)
    assert finding.status is Status.WARNING
    assert finding.detail.startswith(f"nothing can listen on {host}:8095 (")
