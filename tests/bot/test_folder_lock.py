"""One bot uses a data folder; the lock ends with its process."""

from __future__ import annotations

import errno
import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.typing import EventDict

from bot.errors import SetupError
from bot.folder_lock import LOCK_NAME, FolderInUseError, folder_lock
from bot.logs.redaction import describe_error

HOLDER = """
import pathlib, sys, time
from bot.folder_lock import folder_lock
from bot.logs.redaction import describe_error
with folder_lock(pathlib.Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_a_second_one_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    """The sentence says what to do. The file stays, and only its owner can open it."""
    with folder_lock(tmp_path):
        with pytest.raises(FolderInUseError, match="Another Roomtone"), folder_lock(tmp_path):
            pass
        # A refused one does not release the lock of the first.
        with pytest.raises(FolderInUseError), folder_lock(tmp_path):
            pass
    with folder_lock(tmp_path):
        assert (tmp_path / LOCK_NAME).stat().st_mode & 0o777 == 0o600


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    """The kernel releases it."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(FolderInUseError), folder_lock(tmp_path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with folder_lock(tmp_path):
        pass


def test_a_folder_that_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]) -> None:
    """A folder that cannot be written is an error; a file system that has no locks is used without one."""
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="cannot be used"), folder_lock(tmp_path / "file"):
        pass

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with folder_lock(tmp_path):
        pass
    (line,) = logs
    assert line["event"] == "data_folder_not_locked"
    assert describe_error(line["problem"]) == f"[Errno {errno.ENOLCK}] No locks available"
