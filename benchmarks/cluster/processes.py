"""Processes of this machine, read from /proc: who started whom, and what CPU time and memory they take.

Recognisers are found by their command lines. A bot that Ray keeps leads a session of its own, so it is found by its
parents.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator, Sequence

PROC = Path("/proc")
_KB_A_MB = 1_000
# Fields of /proc/PID/stat after the command, from 0: parent, user and system time.
_PARENT, _USER, _SYSTEM = 1, 11, 12


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """One process. `cpu_s`: so far. `memory_mb`: its share of physical memory, with shared pages divided by their
    users (PSS). `resident_mb`, `own_mb`: all of its pages, and those that nobody else has (RSS and USS).
    """

    command: str
    cpu_s: float
    memory_mb: float
    resident_mb: float = 0.0
    own_mb: float = 0.0


def _use(folder: Path) -> ProcessUse:
    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    fields = _fields(folder)
    ticks = int(fields[_USER]) + int(fields[_SYSTEM])
    kb = {
        name: int(rest.split()[0])
        for name, colon, rest in (
            line.partition(":") for line in (folder / "smaps_rollup").read_text("utf-8").splitlines()
        )
        if colon and rest.endswith("kB")
    }
    own_kb = kb.get("Private_Clean", 0) + kb.get("Private_Dirty", 0)
    return ProcessUse(
        command, ticks / os.sysconf("SC_CLK_TCK"), kb["Pss"] / _KB_A_MB, kb.get("Rss", 0) / _KB_A_MB, own_kb / _KB_A_MB
    )


def family(pid: int) -> list[int]:
    """Return a process and everything below it that runs now, the process itself first."""
    parents = {int(folder.name): _parent(folder) for folder in PROC.iterdir() if folder.name.isdecimal()}
    found = [pid] if pid in parents else []
    for each in found:
        found.extend(child for child, parent in parents.items() if parent == each)
    return found


def signal_family(pid: int, sign: signal.Signals) -> None:
    """Send a signal to a process and everything below it."""
    for each in family(pid):
        with suppress(ProcessLookupError):
            os.kill(each, sign)


def use_of(pids: Sequence[int]) -> list[ProcessUse]:
    """Return what those of the processes take that still run."""
    found = []
    for pid in pids:
        with suppress(OSError, IndexError, KeyError, ValueError):
            found.append(_use(PROC / str(pid)))
    return found


def owner_of_udp_port(port: int, among: Sequence[int]) -> int | None:
    """Return which of these processes has the UDP socket of a port of this machine."""
    ending = f":{port:04X}"
    for line in (PROC / "net" / "udp").read_text("ascii").splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(ending):
            return next((pid for pid in among if _has_open(pid, f"socket:[{fields[9]}]")), None)
    return None


def _parent(folder: Path) -> int:
    with suppress(OSError, IndexError):
        return int(_fields(folder)[_PARENT])
    return 0


def _fields(folder: Path) -> list[str]:
    return (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()


def _has_open(pid: int, target: str) -> bool:
    return target in _open_files(pid)


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for each in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                yield str(each.readlink())
