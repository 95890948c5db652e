"""`roomtone backup` and `roomtone restore`: what they say, and that no bot may run during a restore."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest

from bot.folder_lock import folder_lock
from tests.bot.cli.memory.stored_evening import told


def test_a_backup_brings_the_memory_back(data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A person who was forgotten in between stays forgotten, and the owner is told."""
    file = str(tmp_path / "copy.db")
    assert "Backed up and checked: 1 session with 100 turns" in told(capsys, "backup", file)
    assert "never overwrites" in told(capsys, "backup", file, status=1)
    told(capsys, "memory", "forget", "--person", "ada", "--yes")
    out = told(capsys, "restore", file, "--yes")
    assert "Restored and checked: 1 session with 100 turns" in out
    assert "What was here is in " in out
    assert "1 person was forgotten since the backup" in out
    assert "Nothing was found." in told(capsys, "memory", "search", "Lisbon")
    assert "4411" in told(capsys, "memory", "search", "gate code")
    assert "not known here" not in out
    (data_dir / "roomtone.db").unlink()
    assert "There is no memory yet" in told(capsys, "backup", str(tmp_path / "more.db"), status=1)
    assert "not known here" in told(capsys, "restore", file)


def test_daily_backups_keep_the_latest(data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`roomtone backup backups --keep 7`: what else is in the folder stays."""
    folder = tmp_path / "backups"
    folder.mkdir()
    for name in ("roomtone-2020-01-01-000000.db", "roomtone-2020-01-02-000000.db", "roomtone-mine.db"):
        (folder / name).touch()
    told(capsys, "backup", str(folder), "--keep", "2")
    oldest, newest, mine = sorted(each.name for each in folder.iterdir())
    assert (oldest, mine) == ("roomtone-2020-01-02-000000.db", "roomtone-mine.db")
    told(capsys, "restore", str(folder / newest), "--yes")


def test_no_bot_may_run(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup may be written while the bot runs, but not restored. Without a yes nothing happens."""
    file = str(tmp_path / "copy.db")
    with folder_lock(data_dir):
        told(capsys, "backup", file)
        before = (data_dir / "roomtone.db").read_bytes()
        assert "Another Roomtone uses" in told(capsys, "restore", file, "--yes", status=1)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert "Go on?" in told(capsys, "restore", file, status=130)
    assert (data_dir / "roomtone.db").read_bytes() == before


def test_a_second_bot_ends_with_a_sentence(
    data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`roomtone run` on the folder of a running bot leaves its database as it is."""
    monkeypatch.setenv("DISCORD_TOKEN", f"{base64.b64encode(b'123456789012345678').decode()}.local.{'x' * 27}")
    before = (data_dir / "roomtone.db").read_bytes()
    with folder_lock(data_dir):
        assert "Another Roomtone uses" in told(capsys, "run", status=1)
    assert (data_dir / "roomtone.db").read_bytes() == before
