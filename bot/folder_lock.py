"""The lock on the data folder: one bot at a time, and no bot while a backup is restored.

The kernel holds the lock for the process and releases it whatever ends the process, so nothing is left to clean up.
Commands that only use the database need no such lock: the database has its own.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from bot.errors import SetupError
from bot.private_files import make_private_folder, open_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

log = structlog.get_logger()

LOCK_NAME = "roomtone.lock"
_TAKEN = (errno.EAGAIN, errno.EACCES)


class FolderInUseError(SetupError):
    """Another process has the lock: end it first."""


@contextmanager
def folder_lock(data_dir: Path) -> Iterator[int]:
    """Hold the folder's lock. Yields its descriptor: a process that inherits it holds the lock as well.

    Raises `FolderInUseError` if another process has it, `SetupError` if it cannot be made.

    A file system without such locks is used without one, with a warning in the log.
    """
    path = data_dir / LOCK_NAME
    try:
        make_private_folder(data_dir)
        descriptor = open_private(str(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SetupError(f"{path} cannot be used: {reason}. Check storage.data_dir and its rights.") from error
    try:
        _take(descriptor, data_dir)
        yield descriptor
    finally:
        # Closing releases the lock. The file stays: whoever removed it would let a third process lock another file.
        os.close(descriptor)


def is_locked(data_dir: Path) -> bool:
    """Return whether a process holds the folder's lock. Any number of processes may ask at once; one that takes the
    lock at that moment may be refused.
    """
    try:
        descriptor = os.open(data_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _TAKEN
    finally:
        os.close(descriptor)
    return False


def _take(descriptor: int, data_dir: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            raise FolderInUseError(
                f"Another Roomtone uses {data_dir}: a bot that runs, or a restore. Stop it first (SIGTERM or Ctrl-C), "
                "or set storage.data_dir to another folder for this one."
            ) from error
        log.warning("data_folder_not_locked", problem=error)
