"""Removes lines from the log files: those that are too old, and those about a person who is forgotten.

The bot or another process may write to a file meanwhile. A changed file takes the place of the old one; lines that were
written to the old one until then are copied, and writers open the new one with their next line. A file that is rotated
meanwhile is changed under its next name.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO

from bot.logs.log_file import FILE_NAME
from bot.private_files import open_private

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Each line begins with its time (`bot.logs.formatters`).
_WRITTEN_AT = re.compile(rb'^\{"timestamp": ?"([^"]+)"')
_UNFINISHED = ".new"
# Writing a log file anew takes seconds. What is older was left by a process that was killed.
_LEFTOVER_S = 3600.0


def drop_lines_before(folder: Path, at: float) -> int:
    """Remove the log lines in `folder` that were written before `at` (UTC epoch seconds). Returns how many.

    Raises `OSError`: if one file fails, at the end, when the others are done.
    """
    return _in_each_file(folder, lambda path: _rewrite(path, _since(at)) if _begins_before(path, at) else 0)


def _since(at: float) -> Callable[[bytes], bytes]:
    """Return a function that removes the lines written before `at`. Call it for each line of one file, in order."""
    reached = False

    def kept(line: bytes) -> bytes:
        nonlocal reached
        # Lines are in the order of their times. A line without a time belongs to the one before it.
        written_at = None if reached else _time_of(line)
        reached = reached or (written_at is not None and written_at >= at)
        return line if reached else b""

    return kept


def forget_in_logs(folder: Path, person_id: str) -> int:
    """Remove the lines in `folder` that have a person's id. Returns how many.

    Raises `OSError`: if one file fails, at the end, when the others are done.
    """
    has_id = re.compile(rb"(?<!\w)" + re.escape(person_id.encode()) + rb"(?!\w)")
    return _in_each_file(folder, lambda path: _rewrite(path, lambda line: b"" if has_id.search(line) else line))


def _in_each_file(folder: Path, change: Callable[[Path], int]) -> int:
    """Return the sum of what `change` returns for the log files. Raises the first `OSError` when all were tried."""
    _remove_leftovers(folder)
    count = 0
    failure: OSError | None = None
    seen: set[Path] = set()
    # A rotation moves files to names that come later, also to one that was not there at first.
    while (path := next((each for each in _log_files(folder) if each not in seen), None)) is not None:
        seen.add(path)
        try:
            count += change(path)
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return count


def _log_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(f"{FILE_NAME}*") if path.suffix != _UNFINISHED)


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed processes were writing. Nothing else reaches the lines in it."""
    for path in folder.glob(f"{FILE_NAME}*{_UNFINISHED}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _LEFTOVER_S:
                path.unlink()


def _begins_before(path: Path, at: float) -> bool:
    with path.open("rb") as lines:
        for line in lines:
            written_at = _time_of(line)
            if written_at is not None:
                return written_at < at
    return path.stat().st_mtime < at


def _time_of(line: bytes) -> float | None:
    found = _WRITTEN_AT.match(line)
    if found is None:
        return None
    with suppress(ValueError):
        return datetime.fromisoformat(found.group(1).decode("utf-8", "replace")).timestamp()
    return None


def _rewrite(path: Path, change: Callable[[bytes], bytes]) -> int:
    """Replace each line of a file by what `change` returns for it. Returns how many lines differ now: none if the file
    was rotated meanwhile.
    """
    with path.open("rb") as old:
        before = old.readlines()
        after = [change(line) for line in before]
        count = sum(line != changed for line, changed in zip(before, after, strict=True))
        if not count:
            return 0
        new_path = path.with_name(path.name + _UNFINISHED)
        try:
            with open(new_path, "wb", opener=_open_for_appending) as new:
                new.writelines(after)
                new.flush()
                if not _is_at(path, old):
                    new_path.unlink()
                    return 0
                new_path.replace(path)
                # What was written to the old file in the meantime.
                new.write(old.read())
        except OSError:
            # On a full disk it would take the last of the room.
            with suppress(OSError):
                new_path.unlink()
            raise
    return count


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Return whether an open file is still the one with this name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _open_for_appending(path: str, flags: int) -> int:
    """For the `opener` of `open`: whatever others write to the new file meanwhile, nothing is written over it."""
    return open_private(path, flags | os.O_APPEND)
