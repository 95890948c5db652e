"""The files that the bot logs into: where they are, how they rotate, how they survive what fails, and how lines are
removed from them: those that are too old, and those with the id of a person who is forgotten.
"""

from __future__ import annotations

import logging.handlers
import os
import re
import time
from contextlib import suppress
from datetime import datetime
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING, Any

import structlog

from bot.private_files import make_private_folder, open_private

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# A log file is rotated at this size, which holds several evenings. `KEEP_FILES` rotated files are kept beside it.
MAX_FILE_BYTES = 20_000_000
KEEP_FILES = 5
FILE_NAME = "roomtone.jsonl"
_REMEDY = "Free some space or give the user that runs the bot write access."


def log_path(data_dir: Path) -> Path:
    return data_dir / "logs" / FILE_NAME


def is_at(path: Path, file: IO[Any]) -> bool:
    """Return whether an open file is still the one with this name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except OSError:
        return False


class LogFile(logging.handlers.RotatingFileHandler):
    """A rotating log file that survives a full disk, a missing directory and rotation by another process.

    Lines that cannot be written are lost. Every event tries again, so logging recovers by itself; the log then says how
    many are missing. `problem`: why the file cannot be written, as a sentence; None while it can.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep_files: int) -> None:
        super().__init__(path, maxBytes=max_bytes, backupCount=keep_files, encoding="utf-8", delay=True)
        self.path = path
        self.problem: str | None = None
        self._lost_lines = 0

    def probe(self) -> None:
        """Open the file now, so that a directory without write access is reported at the start."""
        self.acquire()
        try:
            self._opened()
        except OSError as exc:
            self._record_failure(exc)
        finally:
            self.release()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record) + self.terminator
            stream = self._opened()
            if stream.tell() + len(line) > self.maxBytes:
                self.doRollover()
                stream = self._opened()
            stream.write(line)
            stream.flush()
        except OSError as exc:
            self._lost_lines += 1
            self._record_failure(exc)
        except Exception:  # noqa: BLE001 - a line that cannot be formatted must not stop the work that logs it
            self._lost_lines += 1
        else:
            lost, self._lost_lines, self.problem = self._lost_lines, 0, None
            if lost:
                structlog.get_logger().warning("log_lines_lost", path=self.path, line_count=lost)

    def close(self) -> None:
        """Close the file; unflushed lines are lost if they cannot be written."""
        with suppress(OSError):
            super().close()

    def _opened(self) -> TextIOWrapper:
        """Return the open file, which is begun anew if another process has rotated, moved or deleted it."""
        if self.stream is not None and not is_at(self.path, self.stream):
            self._close_stream()
        if self.stream is None:
            make_private_folder(self.path.parent)
            self.stream = self._open()
        return self.stream

    def _open(self) -> TextIOWrapper:
        # Binary first, because open() with an opener has no precise type.
        return TextIOWrapper(open(self.path, "ab", opener=open_private), encoding=self.encoding)

    def _close_stream(self) -> None:
        stream, self.stream = self.stream, None
        if stream is not None:
            # Closing flushes, so a failed write fails again here.
            with suppress(OSError):
                stream.close()

    def _record_failure(self, exc: OSError) -> None:
        self._close_stream()
        is_new, reason = self.problem is None, exc.strerror or type(exc).__name__
        self.problem = f"The log {self.path} cannot be written ({reason}); the bot goes on without it. {_REMEDY}"
        if is_new:
            structlog.get_logger().error("log_file_refused", path=self.path, problem=exc, remedy=_REMEDY)


# -- removing lines --------------------------------------------------------------------------------------------------
# The bot or another process may write to a file meanwhile. A changed file takes the place of the old one; lines that
# were written to the old one until then are copied, and writers open the new one with their next line. A file that is
# rotated meanwhile is changed under its next name.

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
        first = next((place for place, line in enumerate(lines) if (_time_of(line) or 0.0) >= at), len(lines))
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
    failures: list[OSError] = []
    seen: set[Path] = set()
    count = 0
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
            # Whatever others write to the new file meanwhile, nothing is written over it.
            with open(new_path, "wb", opener=lambda path, flags: open_private(path, flags | os.O_APPEND)) as new:
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
