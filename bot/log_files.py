"""Removes lines from the log files: those that are too old.

The bot or another process may write to a file meanwhile. A changed file takes the place of the old one; lines that were
written to the old one until then are copied, and writers open the new one with their next line.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from bot.logs import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Each line begins with its time (`bot.logs`).
_WRITTEN_AT = re.compile(rb'^\{"timestamp": ?"([^"]+)"')
_UNFINISHED = ".new"


def drop_lines_before(folder: Path, at: float) -> int:
    """Remove the log lines in `folder` that were written before `at` (UTC epoch seconds). Returns how many."""
    return sum(_rewrite(path, _since(at)) for path in _log_files(folder) if _begins_before(path, at))


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


def _log_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(f"{FILE_NAME}*") if path.suffix != _UNFINISHED)


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
    """Replace each line of a file by what `change` returns for it. Returns how many lines differ now."""
    with path.open("rb") as old:
        before = old.readlines()
        after = [change(line) for line in before]
        count = sum(line != changed for line, changed in zip(before, after, strict=True))
        if not count:
            return 0
        new_path = path.with_name(path.name + _UNFINISHED)
        new_path.unlink(missing_ok=True)
        opened = os.open(new_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "wb") as new:
            new.writelines(after)
            new.flush()
            new_path.replace(path)
            # What was written to the old file in the meantime.
            new.write(old.read())
    return count
