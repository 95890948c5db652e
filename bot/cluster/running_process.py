"""Tells which process uses a folder: the one that holds its lock and whose number is written there.

A number that a killed process left behind names nobody, because the lock ended with it.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from bot.folder_lock import FolderInUseError, folder_lock, is_locked
from bot.private_files import write_private_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# In the folder: the process that has it.
PROCESS_FILE = "process.pid"
# Who looks whether the lock is held holds it for a moment.
_ATTEMPTS = 5
_PAUSE_S = 0.05


@contextmanager
def occupied(folder: Path) -> Iterator[None]:
    """Have the folder during the block. Raises `FolderInUseError` if another process has it, `SetupError`."""
    with for_a_child(folder):
        write_private_text(folder / PROCESS_FILE, str(os.getpid()))
        yield


@contextmanager
def for_a_child(folder: Path) -> Iterator[int]:
    """Hold the folder's lock for a process that is started in the block: it has the folder if it inherits the
    descriptor that this yields, and its number belongs into `PROCESS_FILE`. Raises as `occupied`.
    """
    with ExitStack() as stack:
        for attempt in range(_ATTEMPTS):
            try:
                descriptor = stack.enter_context(folder_lock(folder))
                break
            except FolderInUseError:
                if attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(_PAUSE_S)
        (folder / PROCESS_FILE).unlink(missing_ok=True)
        yield descriptor


def running_process(folder: Path) -> int | None:
    """Return the process that has the folder; None if there is none."""
    if not is_locked(folder):
        return None
    try:
        return int((folder / PROCESS_FILE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        # It is being started.
        return None
