"""What the processes of a network of their own use, read from /proc: CPU time and memory.

All of a pool's processes are children of the measured one or of Ray, so they are found by their command lines.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_KB_A_MB = 1_000
# Fields of /proc/PID/stat after the command: the 12th and 13th are user and system time.
_USER, _SYSTEM = 11, 12


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """One process. `cpu_s`: so far. `memory_mb`: its share of physical memory, with shared pages divided by their
    users (PSS).
    """

    command: str
    cpu_s: float
    memory_mb: float


def running(proc: Path = PROC) -> list[ProcessUse]:
    """Return every process that can be read."""
    found = []
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            found.append(_use(folder))
        except (OSError, IndexError, ValueError):
            # It has ended meanwhile, or is not ours.
            continue
    return found


def cpu_s(of: list[ProcessUse], named: str = "") -> float:
    """Return the CPU seconds of all processes whose command line has `named`."""
    return sum(each.cpu_s for each in of if named in each.command)


def memory_mb(of: list[ProcessUse], named: str) -> list[float]:
    """Return the memory of each process whose command line has `named`."""
    return [each.memory_mb for each in of if named in each.command]


def _use(folder: Path) -> ProcessUse:
    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    fields = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
    ticks = int(fields[_USER]) + int(fields[_SYSTEM])
    lines = (folder / "smaps_rollup").read_text("utf-8").splitlines()
    [shares_kb] = [int(line.split()[1]) for line in lines if line.startswith("Pss:")]
    return ProcessUse(command, ticks / os.sysconf("SC_CLK_TCK"), shares_kb / _KB_A_MB)
