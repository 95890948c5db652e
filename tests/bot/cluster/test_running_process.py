"""Which process has a folder."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from bot.cluster.running_process import PROCESS_FILE, occupied, running_process
from bot.folder_lock import LOCK_NAME, FolderInUseError, folder_lock

if TYPE_CHECKING:
    from pathlib import Path


def test_only_the_holder_of_the_lock_is_the_running_process(tmp_path: Path) -> None:
    """A file that a killed process left behind names nobody: its number may belong to another program by now."""
    folder = tmp_path / "cluster"
    assert running_process(folder) is None
    with occupied(folder):
        assert running_process(folder) == os.getpid()
    assert (folder / PROCESS_FILE).exists()
    assert running_process(folder) is None


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    """The first one keeps the folder, and stays the one that is told."""
    with occupied(tmp_path):
        with pytest.raises(FolderInUseError), occupied(tmp_path):
            pass
        assert running_process(tmp_path) == os.getpid()


def test_who_only_looks_is_not_taken_for_the_process(tmp_path: Path) -> None:
    """Several processes look at once, while the number of one that is gone is still there."""
    with occupied(tmp_path):
        pass
    looking = os.open(tmp_path / LOCK_NAME, os.O_RDONLY)
    try:
        fcntl.flock(looking, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert running_process(tmp_path) is None
    finally:
        os.close(looking)


def test_a_process_that_has_not_said_its_number_is_not_there_yet(tmp_path: Path) -> None:
    """Nobody gets the number of the one before it."""
    with folder_lock(tmp_path):
        assert running_process(tmp_path) is None
