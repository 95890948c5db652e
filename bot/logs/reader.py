"""Reads the lines of a log that is being written, rotated and sometimes truncated; each line once and in order.

A line is the bytes between two newlines; `parse_event` reads the event in it.
"""

from __future__ import annotations

import json
import os
import re
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
# How each line begins (`bot.logs.output`). That stays when words are taken out of it.
_BEGINNING = re.compile(rb'^\{"timestamp": ?"[^"]+".*?"event": ?"[^"]*"')


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
            if newer is None:
                self._skip_what_was_read(file)
        yield from self._more()

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
                    self._last = line
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

    def _skip_what_was_read(self, file: BinaryIO) -> None:
        """Go behind the last line that was read, if it is in the file: a log from which lines or words are removed is
        written anew (`bot.logs.log_file`), and its other lines were read before.
        """
        begins, read_to = _BEGINNING.match(self._last), 0
        while begins and (line := file.readline()):
            if line.startswith(begins[0]):
                read_to = file.tell()
        file.seek(read_to)


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
