"""Describe the machine that the figures were measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine in a few words. `cores`: the cores that this process may use. `load_1m`: the load average at the
    start.
    """

    system: str
    cpu: str
    cores: int
    memory_gb: float
    python: str
    roomtone: str
    load_1m: float


def describe_machine(*, cpuinfo: Path = Path("/proc/cpuinfo"), meminfo: Path = Path("/proc/meminfo")) -> Machine:
    """Return the machine that this process runs on. Unknown values are `unknown` or 0."""
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        cpu=_cpu_name(cpuinfo),
        cores=_usable_cores(),
        memory_gb=_memory_gb(meminfo),
        python=platform.python_version(),
        roomtone=_version(),
        load_1m=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0,
    )


def busy_sentence(load_1m: float | None = None, cores: int | None = None) -> str | None:
    """Return a remark if other processes overload the machine, which makes times longer. Otherwise return None."""
    load = load_1m if load_1m is not None else os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    available = _usable_cores() if cores is None else cores
    # The load includes this process itself.
    if load <= available + 1:
        return None
    return (
        f"The machine was busy (load {load:.1f} on {available} cores), so times are mostly waiting; the CPU times "
        "beside them say what the work takes."
    )


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_name(cpuinfo: Path) -> str:
    try:
        lines = cpuinfo.read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _memory_gb(meminfo: Path) -> float:
    try:
        lines = meminfo.read_text("utf-8").splitlines()
    except OSError:
        return 0.0
    total_kb = [int(line.split()[1]) for line in lines if line.startswith("MemTotal:")]
    return round(total_kb[0] / 1e6, 1) if total_kb else 0.0


def _version() -> str:
    try:
        return metadata.version("roomtone")
    except metadata.PackageNotFoundError:
        return "unknown"
