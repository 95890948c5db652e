"""The report of a benchmark: the machine, the figures, and the targets.

One JSON object `{"bench", "machine", "ours", "targets", "remarks"}`; `roomtone bench` shows it as tables.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from bot.errors import BotError
from bot.versions import cpu_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class BenchmarkError(BotError):
    """Base class of the benchmarks' errors. The message is a plain sentence with the remedy."""


class TranscriptFormatError(BenchmarkError):
    """A supplied conversation cannot be read: the user must change the file."""


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


@dataclass(frozen=True, slots=True)
class Target:
    """A target and its measured value. `sample`: what was counted.

    `met` is None if this run could not measure it; `value` then says why.
    """

    name: str
    goal: str
    value: float | str | None
    met: bool | None
    sample: str = ""


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """The result of one benchmark. `ours` has one entry for each measurement, by name."""

    bench: str
    machine: Machine
    ours: Mapping[str, Json]
    targets: tuple[Target, ...]
    # Plain sentences for readers, such as which parts could not run and why.
    remarks: tuple[str, ...] = field(default=())

    def as_json(self) -> str:
        """Return the report as one JSON object, ending in a newline."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"


def at_least(name: str, goal: str, value: float | None, least: float, sample: str = "") -> Target:
    """Return a target whose value must be `least` or more. None: the value was not measured."""
    return Target(
        name,
        goal,
        "not measured" if value is None else round(value, 4),
        None if value is None else value >= least,
        sample,
    )


def at_most(
    name: str,
    goal: str,
    value: float | None,
    most: float,
    sample: str = "",
    *,
    failed: float | None = None,
) -> Target:
    """Return a target whose value must not exceed `most`. None: the value was not measured.

    `failed`: how many cases gave no value because what is measured did not happen, so the value is of the others alone.
    One misses the target.
    """
    met = None if value is None else value <= most
    return Target(name, goal, "not measured" if value is None else round(value, 4), False if failed else met, sample)


def describe_machine() -> Machine:
    """Return the machine that this process runs on. Unknown values are `unknown` or 0."""
    return Machine(
        date=datetime.now(UTC).date().isoformat(),
        system=f"{platform.system()} {platform.release()}",
        cpu=cpu_kind(),
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
