"""The file that the bot logs into: where it is, how it rotates, and how it survives what fails."""

from __future__ import annotations

import logging.handlers
import os
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING

import structlog

from bot.private_files import make_private_folder, open_private

if TYPE_CHECKING:
    from pathlib import Path

# A log file is rotated at this size, which holds several evenings. `KEEP_FILES` rotated files are kept beside it.
MAX_FILE_BYTES = 20_000_000
KEEP_FILES = 5
FILE_NAME = "roomtone.jsonl"


def log_path(data_dir: Path) -> Path:
    return data_dir / "logs" / FILE_NAME


class LogFile(logging.handlers.RotatingFileHandler):
    """A rotating log file that survives a full disk, a missing directory and rotation by another process.

    Lines that cannot be written are lost. Every event tries again, so logging recovers by itself; the log then says how
    many are missing.
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
            self._reopen_if_moved()
            self.stream = self.stream or self._open()
        except OSError as exc:
            self._record_failure(exc)
        finally:
            self.release()

    def _open(self) -> TextIOWrapper:
        # Binary first, because open() with an opener has no precise type.
        return TextIOWrapper(open(self.path, "ab", opener=open_private), encoding=self.encoding)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record) + self.terminator
        except Exception:  # noqa: BLE001 - a line that cannot be formatted must not stop the work that logs it
            self._lost_lines += 1
            return
        try:
            self._reopen_if_moved()
            if self.stream is not None and self.stream.tell() + len(line) > self.maxBytes:
                self.doRollover()
            if self.stream is None:
                self.stream = self._open()
            self.stream.write(line)
            self.stream.flush()
        except (OSError, ValueError) as exc:
            self._lost_lines += 1
            self._record_failure(exc)
        else:
            self._tell_lost_lines()

    def close(self) -> None:
        """Close the file; unflushed lines are lost if they cannot be written."""
        with suppress(OSError, ValueError):
            super().close()

    def _reopen_if_moved(self) -> None:
        """Close the file if another process rotated, moved or deleted it, and create the directory again."""
        if self.stream is not None:
            with suppress(OSError):
                here, ours = self.path.stat(), os.fstat(self.stream.fileno())
                if (here.st_dev, here.st_ino) == (ours.st_dev, ours.st_ino):
                    return
            self._close_stream()
        make_private_folder(self.path.parent)

    def _close_stream(self) -> None:
        stream, self.stream = self.stream, None
        if stream is not None:
            # Closing flushes, so a failed write fails again here.
            with suppress(OSError, ValueError):
                stream.close()

    def _record_failure(self, exc: BaseException) -> None:
        self._close_stream()
        first = self.problem is None
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else type(exc).__name__
        self.problem = (
            f"The log {self.path} cannot be written ({reason}); the bot goes on without it. Free some space or give "
            "the user that runs the bot write access."
        )
        if first:
            structlog.get_logger().error(
                "log_file_refused",
                path=self.path,
                problem=exc,
                remedy="Free some space or give the user that runs the bot write access.",
            )

    def _tell_lost_lines(self) -> None:
        """Log how many lines before the one that was just written are missing, if there are any."""
        lost, self._lost_lines, self.problem = self._lost_lines, 0, None
        if lost:
            structlog.get_logger().warning("log_lines_lost", path=self.path, line_count=lost)
