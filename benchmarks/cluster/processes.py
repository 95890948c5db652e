"""Processes of this machine, read from /proc: who started whom.

A part of Ray leads a session of its own, so it is found by its parents.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal

PROC = Path("/proc")
# The parent's place in /proc/PID/stat after the command, from 0.
_PARENT = 1


def signal_family(pid: int, sign: signal.Signals) -> None:
    """Send a signal to a process and everything below it."""
    parents = {int(folder.name): _parent(folder) for folder in PROC.iterdir() if folder.name.isdecimal()}
    found = [pid] if pid in parents else []
    for each in found:
        found.extend(child for child, parent in parents.items() if parent == each)
    for each in found:
        with suppress(ProcessLookupError):
            os.kill(each, sign)


def _parent(folder: Path) -> int:
    with suppress(OSError, IndexError):
        return int((folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[_PARENT])
    return 0
