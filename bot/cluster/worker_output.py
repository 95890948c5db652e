"""What the process of a room worker says: a file that stays small, although it is written for months.

The process appends to it, and so do those of its rooms (`room_worker`). It cuts the file itself, because it lives on
while Ray, and with it its actor, is away.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from bot.clock import Clock

# The log files have what happened (`bot.logs.files`). This has what they cannot: a traceback, a library's last words.
MOST_BYTES: Final = 4_000_000
KEPT_BYTES: Final = 250_000
LOOK_EVERY_S: Final = 10.0
# Enough for the last line, of which the operator reads the beginning.
_TAIL_BYTES: Final = 4_000
_MOST_CHARACTERS: Final = 300


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
    with suppress(OSError), file.open("rb") as output:
        output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = [line.strip() for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1][:_MOST_CHARACTERS] if lines else ""
    return ""
