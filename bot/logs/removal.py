"""Removes text from the log files: lines that are too old, and what tells of a person who is forgotten.

The bot or another process may write to a file meanwhile. A changed file takes the place of the old one; lines that were
written to the old one until then are copied, and writers open the new one with their next line. A file that is rotated
meanwhile is changed under its next name.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from bot.logs.formatters import SPEECH_FIELD
from bot.logs.log_file import FILE_NAME
from bot.logs.redaction import NAME_KEYS, TEXT_KEYS
from bot.private_files import open_private

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compaction.memory.restating import ForgottenWords

# Each line begins with its time (`bot.logs.formatters`).
_WRITTEN_AT = re.compile(rb'^\{"timestamp": ?"([^"]+)"')
_UNFINISHED = ".new"
# Writing a log file anew takes seconds. What is older was left by a process that was killed.
_LEFTOVER_S = 3600.0
# Stands in a log line for a value that told of a forgotten person.
FORGOTTEN_VALUE = "[forgotten]"
# Messages of errors and libraries. They may quote what people said, but only in a line that is marked with
# `SPEECH_FIELD`: the redactor takes quotations out of all others.
_MESSAGE_KEYS = frozenset({"detail", "error", "exception", "problem"})
# Keys whose values no person has said. Somebody may have a name that is among them ('error', 'dashboard login'), or
# say it, so of these values only the person's id is looked for. Otherwise anybody could delete the operator's log.
_OWN_KEYS = (NAME_KEYS | TEXT_KEYS) - _MESSAGE_KEYS


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
    """Take a person's id, and their words and names where people's words may be, out of the log lines in `folder`.
    Returns how many lines changed.

    Raises `OSError`: if one file fails, at the end, when the others are done.
    """
    forgotten = _Forgotten(words, person_id)

    def without(line: bytes) -> bytes:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return b"" if forgotten.is_told_in(line.decode("utf-8", "replace")) else line
        quoting = isinstance(event, dict) and event.get(SPEECH_FIELD) is True
        left = forgotten.taken_out(event, key="", quoting=quoting)
        return line if left == event else json.dumps(left).encode() + b"\n"

    return _in_each_file(folder, lambda path: _rewrite(path, without))


@dataclass(frozen=True, slots=True)
class _Forgotten:
    """What is taken out of log lines. `person_id`: None leaves the id."""

    words: ForgottenWords
    person_id: str | None

    def taken_out(self, value: Any, *, key: str, quoting: bool) -> Any:
        """Return a value of a log line without it. `quoting`: messages of errors in the line may quote people."""
        match value:
            case dict():
                return {name: self.taken_out(each, key=name, quoting=quoting) for name, each in value.items()}
            case list():
                return [self.taken_out(each, key=key, quoting=quoting) for each in value]
            case str():
                is_ours = key in _OWN_KEYS or (key in _MESSAGE_KEYS and not quoting)
                told = self._has_id(value) if is_ours else self.is_told_in(value)
                return FORGOTTEN_VALUE if told else value
            case int() if str(value) == self.person_id:
                return FORGOTTEN_VALUE
            case _:
                return value

    def is_told_in(self, text: str) -> bool:
        """Return whether a text has the person's id, a name of theirs or what they said."""
        return self._has_id(text) or self.words.quoted_or_named_in(text) or self.words.is_all_of(text)

    def _has_id(self, text: str) -> bool:
        return self.person_id is not None and self.person_id in text


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
