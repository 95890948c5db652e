"""Removes text from the log files: lines that are too old, and what tells of a person who is forgotten.

The bot or another process may write to a file meanwhile. A changed file takes the place of the old one; lines that were
written to the old one until then are copied, and writers open the new one with their next line.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bot.logs.log_file import FILE_NAME
from bot.private_files import open_private
from compaction.memory.quotations import names_any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compaction.memory.restating import ForgottenWords

# Each line begins with its time (`bot.logs.formatters`).
_WRITTEN_AT = re.compile(rb'^\{"timestamp": ?"([^"]+)"')
_UNFINISHED = ".new"
# Stands in a log line for a value that told of a forgotten person.
FORGOTTEN_VALUE = "[forgotten]"


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


def forget_in_logs(folder: Path, words: ForgottenWords, *, person_id: str | None = None) -> int:
    """Take a person's words, names and id out of the log lines in `folder`. Returns how many lines changed.

    Raises `OSError`: if one file fails, at the end, when the others are done.
    """

    def without(line: bytes) -> bytes:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return b"" if _tells(line.decode("utf-8", "replace"), words, person_id) else line
        left = _without(event, words, person_id)
        return line if left == event else json.dumps(left).encode() + b"\n"

    return _in_each_file(folder, lambda path: _rewrite(path, without))


def _without(value: Any, words: ForgottenWords, person_id: str | None) -> Any:
    match value:
        case dict():
            return {key: _without(each, words, person_id) for key, each in value.items()}
        case list():
            return [_without(each, words, person_id) for each in value]
        case str():
            return FORGOTTEN_VALUE if _tells(value, words, person_id) else value
        case int() if str(value) == person_id:
            return FORGOTTEN_VALUE
        case _:
            return value


def _tells(text: str, words: ForgottenWords, person_id: str | None) -> bool:
    if person_id is not None and person_id in text:
        return True
    # Most values of log lines are single words, which quote nobody.
    return words.quoted_or_named_in(text) if " " in text else names_any(text, words.names)


def _in_each_file(folder: Path, change: Callable[[Path], int]) -> int:
    """Return the sum of what `change` returns for the log files. Raises the first `OSError` when all were tried."""
    count = 0
    failure: OSError | None = None
    for path in _log_files(folder):
        try:
            count += change(path)
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return count


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
        with open(new_path, "wb", opener=_open_for_appending) as new:
            new.writelines(after)
            new.flush()
            new_path.replace(path)
            # What was written to the old file in the meantime.
            new.write(old.read())
    return count


def _open_for_appending(path: str, flags: int) -> int:
    """For the `opener` of `open`: whatever others write to the new file meanwhile, nothing is written over it."""
    return open_private(path, flags | os.O_APPEND)
