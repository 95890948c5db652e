"""Processes of this machine, read from /proc: who started whom, and what CPU time and memory they take.

A part of Ray leads a session of its own, and so does a bot that Ray keeps, so both are found by their parents.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Sequence

PROC = Path("/proc")
_KB_A_MB = 1_000
# Fields of /proc/PID/stat after the command, from 0: parent, user and system time.
_PARENT, _USER, _SYSTEM = 1, 11, 12


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """One process. `cpu_s`: so far. `memory_mb`: its share of physical memory, with shared pages divided by their
    users (PSS).
    """

    command: str
    cpu_s: float
    memory_mb: float


def running(proc: Path = PROC) -> list[int]:
    """Return all processes."""
    return [int(folder.name) for folder in proc.iterdir() if folder.name.isdecimal()]


def use_of(pids: Iterable[int], proc: Path = PROC) -> list[ProcessUse]:
    """Return what those of the processes take that still run and can be read."""
    found = []
    for pid in pids:
        with suppress(OSError, IndexError, ValueError, StopIteration):
            found.append(_use(proc / str(pid)))
    return found


def cpu_s(of: Sequence[ProcessUse], named: str = "") -> float:
    """Return the CPU seconds of all processes whose command line has `named`."""
    return sum(each.cpu_s for each in of if named in each.command)


def memory_mb(of: Sequence[ProcessUse], named: str = "") -> float:
    """Return the memory of all processes whose command line has `named`."""
    return sum(each.memory_mb for each in of if named in each.command)


def family(pid: int) -> list[int]:
    """Return a process and everything below it that runs now, the process itself first."""
    parents = {each: _parent(PROC / str(each)) for each in running()}
    found = [pid] if pid in parents else []
    for each in found:
        found.extend(child for child, parent in parents.items() if parent == each)
    return found


def signal_family(pid: int, sign: signal.Signals) -> None:
    """Send a signal to a process and everything below it."""
    for each in family(pid):
        with suppress(ProcessLookupError):
            os.kill(each, sign)


def _use(folder: Path) -> ProcessUse:
    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    fields = _fields(folder)
    ticks = int(fields[_USER]) + int(fields[_SYSTEM])
    lines = (folder / "smaps_rollup").read_text("utf-8").splitlines()
    shared_kb = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return ProcessUse(command, ticks / os.sysconf("SC_CLK_TCK"), shared_kb / _KB_A_MB)


def _parent(folder: Path) -> int:
    with suppress(OSError, IndexError):
        return int(_fields(folder)[_PARENT])
    return 0


def _fields(folder: Path) -> list[str]:
    return (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
