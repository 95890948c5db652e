"""Describe the machine that the figures were measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine in a few words, and the day (UTC). `cores`: the cores that this process may use. `load_1m`: the load
    average at the start.
    """

    date: str
    system: str
    cpu: str
    cores: int
    memory_gb: float
    python: str
    roomtone: str
    load_1m: float


def describe_machine() -> Machine:
    """Return the machine that this process runs on. Unknown values are `unknown` or 0."""
    return Machine(
        date=datetime.now(UTC).date().isoformat(),
        system=f"{platform.system()} {platform.release()}",
        cpu=_value(Path("/proc/cpuinfo"), "model name") or platform.processor() or "unknown",
        cores=len(os.sched_getaffinity(0)),
        memory_gb=round(int((_value(Path("/proc/meminfo"), "MemTotal") or "0").split()[0]) / 1e6, 1),
        python=platform.python_version(),
        roomtone=metadata.version("roomtone"),
        load_1m=round(os.getloadavg()[0], 2),
    )


def busy_sentence() -> str | None:
    """Return a remark if other processes overload the machine, which makes times longer. Otherwise return None."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    # The load includes this process itself.
    if load <= cores + 1:
        return None
    return (
        f"The machine was busy (load {load:.1f} on {cores} cores), so times are mostly waiting; the CPU times beside "
        "them say what the work takes."
    )


def _value(file: Path, name: str) -> str:
    """Return the first value of a name in one of the kernel's lists; empty without one, as on some processors."""
    lines = file.read_text("utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
