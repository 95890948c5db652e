"""What the process of a room worker says: a file that stays small, although it is written for months.

The process appends to it, and so do those of its rooms (`room_worker`). It cuts the file itself, because it lives on
while Ray, and with it its actor, is away.
"""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from bot.clock import Clock

# The log files have what happened (`bot.logs.removal`). This has what they cannot: a traceback, a library's last words.
MOST_BYTES: Final = 4_000_000
KEPT_BYTES: Final = 250_000
LOOK_EVERY_S: Final = 10.0
# Enough for the last line, of which the operator reads the beginning.
_TAIL_BYTES: Final = 4_000
_MOST_CHARACTERS: Final = 300
# How structlog's console writes a level.
_WARNING: Final = re.compile(r"\[(?:warning|error|critical) *\]")


async def keep_output_short(file: Path, clock: Clock) -> None:
    """Cut the file whenever it has grown too large, until this is cancelled."""
    while True:
        with suppress(OSError):
            await asyncio.to_thread(cut_output, file)
        await clock.sleep(LOOK_EVERY_S)


def cut_output(file: Path) -> None:
    """Leave the last `KEPT_BYTES` of a file that has more than `MOST_BYTES`, in whole lines. Who appends to it goes on;
    what is said in these milliseconds may be lost. Raises `OSError`.
    """
    with file.open("r+b") as output:
        if output.seek(0, os.SEEK_END) <= MOST_BYTES:
            return
        output.seek(-KEPT_BYTES, os.SEEK_END)
        output.readline()
        kept = output.read()
        output.truncate(0)
    with file.open("ab") as output:
        output.write(kept)


def last_line(file: Path) -> str:
    """Return the last line that has words; empty if there is none. Reads only the file's end."""
    lines = _last_lines(file)
    return lines[-1][:_MOST_CHARACTERS] if lines else ""


def last_warning(file: Path) -> str:
    """Return the last warning or error of the log (`bot.logs`); empty if there is none. Reads only the file's end."""
    warnings = [line for line in _last_lines(file) if _WARNING.search(line)]
    return warnings[-1][:_MOST_CHARACTERS] if warnings else ""


def _last_lines(file: Path) -> list[str]:
    with suppress(OSError), file.open("rb") as output:
        output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return [line.strip() for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return []
