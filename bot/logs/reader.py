"""Reads the lines of a log that is being written, rotated and sometimes truncated; each line once and in order.

A line is the bytes between two newlines; `parse_event` reads the event in it.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Event: TypeAlias = dict[str, Any]

CHUNK_BYTES = 1 << 16
# No event is this long. A longer line is skipped, so that it does not fill the memory.
MAX_LINE_BYTES = 1 << 20
# How each line begins (`bot.logs.formatters`). That stays when words are taken out of it.
_BEGINNING = re.compile(rb'^\{"timestamp": ?"[^"]+".*?"event": ?"[^"]*"')


def rotated_files(path: Path) -> list[Path]:
    """Return the rotated files of a log, oldest first: `name.3`, `name.2`, `name.1`."""
    numbered = {}
    with suppress(OSError):
        for other in path.parent.iterdir():
            if (match := re.fullmatch(re.escape(path.name) + r"\.(\d+)", other.name)) is not None:
                numbered[int(match[1])] = other
    return [numbered[number] for number in sorted(numbered, reverse=True)]


class LogReader:
    """Reads one log and its rotated files. Each call of `read` yields the lines added since.

    Use it as a context manager: it holds one open file, by which it notices a rotation.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._partial = b""
        self._last = b""
        self._too_long = False
        self._begun = False

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            self._file.close()

    def read(self) -> Iterator[bytes]:
        """Yield the complete lines that were not read yet, rotated files first."""
        if not self._begun:
            self._begun = True
            # Open all files before reading any: a rotation in between would change their names.
            older = [file for path in rotated_files(self._path) if (file := _opened(path)) is not None]
            self._file = _opened(self._path)
            for file in older:
                yield from self._whole(file)
        while True:
            self._file = self._file or _opened(self._path)
            if self._file is None:
                return
            yield from self._more()
            unread = self._newer_files()
            if unread is None:
                return
            # Our file was rotated or replaced: read what was written to it meanwhile, then the newer files.
            yield from self._more()
            yield from self.rest()
            self._close()
            for newer in unread:
                yield from self._whole(newer)
            if not unread:
                self._skip_what_was_read()

    def rest(self) -> Iterator[bytes]:
        """Yield the incomplete last line, if the caller does not read again."""
        partial, self._partial = self._partial, b""
        if partial and not self._too_long:
            yield partial
        self._too_long = False

    def _whole(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield all lines of a finished file, and close it."""
        with file:
            while chunk := file.read(CHUNK_BYTES):
                yield from self._lines(chunk)
            yield from self.rest()

    def _more(self) -> Iterator[bytes]:
        """Yield what was added to the open file. A truncated file is read from its beginning."""
        assert self._file is not None
        if self._status().st_size < self._file.tell():
            self._file.seek(0)
            self._partial = b""
        while chunk := self._file.read(CHUNK_BYTES):
            yield from self._lines(chunk)

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        *whole, self._partial = (self._partial + chunk).split(b"\n")
        for line in whole:
            if not self._too_long and line:
                self._last = line
                yield line
            self._too_long = False
        if len(self._partial) > MAX_LINE_BYTES:
            self._partial, self._too_long = b"", True

    def _skip_what_was_read(self) -> None:
        """Open the current log and go behind the last line that was read, if it is there: a log from which lines or
        words are removed is written anew (`bot.logs.removal`), and its other lines were read before.
        """
        self._file = _opened(self._path)
        begins = _BEGINNING.match(self._last)
        if self._file is None or begins is None:
            return
        read_to = 0
        for line in self._file:
            if line.startswith(begins[0]):
                read_to = self._file.tell()
        self._file.seek(read_to)

    def _newer_files(self) -> list[BinaryIO] | None:
        """Return the rotated files newer than the open one, oldest first; None if the open one is the current log."""
        ours = self._status()
        if _is(self._path, ours):
            return None
        older = rotated_files(self._path)
        for place, path in enumerate(older):
            if _is(path, ours):
                return [file for newer in older[place + 1 :] if (file := _opened(newer)) is not None]
        # Moved or deleted by hand: the rotated files were read before, and a new log may still appear.
        return [] if self._path.exists() else None

    def _status(self) -> os.stat_result:
        assert self._file is not None
        return os.fstat(self._file.fileno())

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None


def parse_event(line: bytes) -> tuple[str, Event] | None:
    """Return the event of a line, as text and as values, or None if there is none.

    If a crash cut a line short and the next process appended to it, the last whole event is returned.
    """
    text = line.decode("utf-8", errors="replace").strip("\x00 \r\t")
    for candidate in (text, text[max(text.rfind('{"timestamp"'), 0) :]):
        try:
            event = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            return candidate, event
    return None


def _opened(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _is(path: Path, status: os.stat_result) -> bool:
    try:
        other = path.stat()
    except OSError:
        return False
    return (other.st_dev, other.st_ino) == (status.st_dev, status.st_ino)
