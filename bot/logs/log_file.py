"""The file that the bot logs into: where it is, how it rotates, and how it survives what fails."""

from __future__ import annotations

import logging.handlers
import os
from contextlib import suppress
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING, Any

import structlog

from bot.private_files import make_private_folder, open_private

if TYPE_CHECKING:
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
