"""Processes of this machine: started with their output kept, and read from /proc: who started whom, and what CPU time
and memory they take.

A part of Ray leads a session of its own, and so does a bot that Ray keeps, so both are found by their parents.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.report import BenchmarkError

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Iterable, Mapping, Sequence

PROC = Path("/proc")
_KB_A_MB = 1_000
# Fields of /proc/PID/stat after the command, from 0: parent, user and system time.
_PARENT, _USER, _SYSTEM = 1, 11, 12


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What processes take. `cpu_s`: so far. `memory_mb`: their share of physical memory, with shared pages divided by
    their users (PSS). `rss_mb`: the same with shared pages counted in each.
    """

    cpu_s: float
    memory_mb: float
    rss_mb: float


def without_settings(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a Python process that gets none of the operator's settings, and `more`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOMTONE_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1", **more}


async def start_process(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], *, until: str, within_s: float
) -> Process:
    """Run Python with these words in a folder, and return once it has printed `until`. Its output is kept there.

    Raises `BenchmarkError` with what it printed last. Then, as on a cancellation, nothing of it is left.
    """
    output = folder / "output.txt"
    with output.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *words),
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        async with asyncio.timeout(within_s):
            while until not in await asyncio.to_thread(output.read_text, "utf-8", "replace"):
                if process.returncode is not None:
                    raise TimeoutError
                await asyncio.sleep(0.1)
    except BaseException as error:
        signal_family(process.pid, signal.SIGKILL)
        await process.wait()
        if isinstance(error, TimeoutError):
            said = output.read_text("utf-8", "replace")[-400:]
            raise BenchmarkError(f"`{' '.join(words)}` did not start. It said: {said}") from error
        raise
    return process


def running() -> list[int]:
    """Return all processes."""
    return [int(folder.name) for folder in PROC.iterdir() if folder.name.isdecimal()]


def use_of(pids: Iterable[int], named: str = "") -> ProcessUse:
    """Return what those of the processes take together that still run and can be read, and whose command line has
    `named`.
    """
    ticks = shared_kb = resident_kb = 0
    for folder in (PROC / str(pid) for pid in pids):
        with suppress(OSError, IndexError, ValueError, StopIteration):
            if named.encode() in (folder / "cmdline").read_bytes():
                fields, lines = _fields(folder), (folder / "smaps_rollup").read_text("utf-8").splitlines()
                shared_kb += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
                resident_kb += next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))
                ticks += int(fields[_USER]) + int(fields[_SYSTEM])
    return ProcessUse(ticks / os.sysconf("SC_CLK_TCK"), shared_kb / _KB_A_MB, resident_kb / _KB_A_MB)


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


def _parent(folder: Path) -> int:
    with suppress(OSError, IndexError):
        return int(_fields(folder)[_PARENT])
    return 0


def _fields(folder: Path) -> list[str]:
    return (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
