"""Removes lines from the log files: those that are too old, and those with the id of a person who is forgotten.

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
from typing import TYPE_CHECKING

from bot.logs.log_file import FILE_NAME, is_at
from bot.private_files import open_private

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Each line begins with its time (`bot.logs.output`).
_WRITTEN_AT = re.compile(rb'^\{"timestamp": ?"([^"]+)"')
_UNFINISHED = ".new"
# Writing a log file anew takes seconds. What is older was left by a process that was killed.
_LEFTOVER_S = 3600.0


def drop_lines_before(folder: Path, at: float) -> int:
    """Remove the log lines in `folder` that were written before `at` (UTC epoch seconds). Returns how many.

    Raises `OSError`: if one file fails, at the end, when the others are done.
    """

    def recent(lines: list[bytes]) -> list[bytes]:
        # Lines are in the order of their times. A line without a time belongs to the one before it.
        times = map(_time_of, lines)
        first = next((place for place, written_at in enumerate(times) if (written_at or 0.0) >= at), len(lines))
        return lines[first:]

    return _in_each_file(folder, recent)


def forget_in_logs(folder: Path, person_id: str) -> int:
    """Remove the lines in `folder` that have a person's id. Returns how many.

    Raises `OSError`: if one file fails, at the end, when the others are done.
    """
    has_id = re.compile(rb"(?<!\w)" + re.escape(person_id.encode()) + rb"(?!\w)")
    return _in_each_file(folder, lambda lines: [line for line in lines if not has_id.search(line)])


def _time_of(line: bytes) -> float | None:
    with suppress(ValueError):
        if found := _WRITTEN_AT.match(line):
            return datetime.fromisoformat(found[1].decode("utf-8", "replace")).timestamp()
    return None


def _in_each_file(folder: Path, change: Callable[[list[bytes]], list[bytes]]) -> int:
    """Leave of the lines of each log file what `change` returns. Returns how many lines went. Raises the first
    `OSError` when all were tried.
    """
    for path in folder.glob(f"{FILE_NAME}*{_UNFINISHED}"):
        # What killed processes were writing. Nothing else reaches the lines in it.
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _LEFTOVER_S:
                path.unlink()
    count = 0
    failures: list[OSError] = []
    seen: set[Path] = set()
    # A rotation moves files to names that come later, also to one that was not there at first.
    while left := sorted({each for each in folder.glob(f"{FILE_NAME}*") if each.suffix != _UNFINISHED} - seen):
        seen.add(left[0])
        try:
            count += _rewrite(left[0], change)
        except OSError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return count


def _rewrite(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> int:
    """Leave of the lines of a file what `change` returns. Returns how many went: none if the file was rotated
    meanwhile.
    """
    with path.open("rb") as old:
        before = old.readlines()
        after = change(before)
        if len(after) == len(before):
            return 0
        new_path = path.with_name(path.name + _UNFINISHED)
        try:
            with open(new_path, "wb", opener=_open_for_appending) as new:
                new.writelines(after)
                new.flush()
                if not is_at(path, old):
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
    return len(before) - len(after)


def _open_for_appending(path: str, flags: int) -> int:
    """For the `opener` of `open`: whatever others write to the new file meanwhile, nothing is written over it."""
    return open_private(path, flags | os.O_APPEND)
