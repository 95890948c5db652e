"""Reads the lines of a log that is being written, rotated and sometimes truncated; each line once and in order.

A line is the bytes between two newlines; `parse_event` reads the event in it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from bot.logs.log_file import is_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LogEvent: TypeAlias = dict[str, Any]

CHUNK_BYTES = 1 << 16
# No event is this long. A longer line is skipped, so that it does not fill the memory.
MAX_LINE_BYTES = 1 << 20
# Each line begins with its time, to the microsecond (`bot.logs.output`).
_TIME_BYTES = len('{"timestamp": "2026-01-31T21:04:05.123456Z')


def rotated_files(path: Path) -> list[Path]:
    """Return the rotated files of a log, oldest first: `name.3`, `name.2`, `name.1`."""
    found = [each for each in path.parent.glob("*") if each.stem == path.name and each.suffix[1:].isdecimal()]
    return sorted(found, key=lambda each: -int(each.suffix[1:]))


class LogReader:
    """Reads one log and its rotated files. Each call of `read` yields the lines added since.

    Use it as a context manager: it holds one open file, by which it notices a rotation.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._partial = self._last = b""
        self._too_long = False

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            self._file.close()

    def read(self) -> Iterator[bytes]:
        """Yield the complete lines that were not read yet, rotated files first."""
        newer = self._newer_files()
        # All are opened before any is read: a rotation in between would change their names.
        for file in [file for path in ([self._path] if newer is None else newer) for file in _opened(path)]:
            # Ours was rotated or replaced: read what was written to it meanwhile.
            yield from self._more()
            yield from self.rest()
            self.__exit__()
            self._file = file
        # A log from which lines or words are removed is written anew (`bot.logs.log_file`). What is left was read.
        read_to = self._last[:_TIME_BYTES] if newer is None else b""
        yield from (line for line in self._more() if line[:_TIME_BYTES] > read_to)

    def rest(self) -> Iterator[bytes]:
        """Yield the incomplete last line, if the caller does not read again."""
        partial, self._partial = self._partial, b""
        if partial and not self._too_long:
            yield partial
        self._too_long = False

    def _more(self) -> Iterator[bytes]:
        """Yield what was added to the open file. A truncated file is read from its beginning."""
        if self._file is None:
            return
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self._partial = b""
        while chunk := self._file.read(CHUNK_BYTES):
            *whole, self._partial = (self._partial + chunk).split(b"\n")
            for line in whole:
                if line and not self._too_long:
                    self._last = max(self._last, line)
                    yield line
                self._too_long = False
            if len(self._partial) > MAX_LINE_BYTES:
                self._partial, self._too_long = b"", True

    def _newer_files(self) -> list[Path] | None:
        """Return the files after the open one, oldest first; None if the open one was moved, deleted or replaced."""
        paths = [*rotated_files(self._path), self._path]
        if self._file is None:
            return paths
        for place, path in enumerate(paths, start=1):
            if is_at(path, self._file):
                return paths[place:]
        return None


def parse_event(line: bytes) -> tuple[str, LogEvent] | None:
    """Return the event of a line, as text and as values, or None if there is none.

    If a crash cut a line short and the next process appended to it, the last whole event is returned.
    """
    text = line.decode("utf-8", errors="replace").strip("\x00 \r\t")
    for candidate in (text, text[max(text.rfind('{"timestamp"'), 0) :]):
        with suppress(ValueError, RecursionError):
            event = json.loads(candidate)
            if isinstance(event, dict) and isinstance(event.get("event"), str):
                return candidate, event
    return None


def _opened(path: Path) -> Iterator[BinaryIO]:
    with suppress(FileNotFoundError):
        yield path.open("rb")
