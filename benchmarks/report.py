"""What every benchmark writes: the machine, our figures, the others', and the targets with what was reached.

One JSON object `{"bench", "machine", "ours", "peers", "targets"}`; `roomtone bench` shows the same as tables.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.machine import Machine

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class Target:
    """One goal and what was measured. `met` is None when this run could not measure it; `value` says why then."""

    name: str
    goal: str
    value: float | str | None
    met: bool | None


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """The outcome of one benchmark. `ours` and `peers` hold one entry a contender, by name."""

    bench: str
    machine: Machine
    ours: Mapping[str, Json]
    peers: Mapping[str, Json]
    targets: tuple[Target, ...]
    # Plain sentences for whoever reads the figures: what could not be run, and why.
    remarks: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Json]:
        """Return the report as JSON has it."""
        return {
            "bench": self.bench,
            "machine": dict(asdict(self.machine)),
            "ours": dict(self.ours),
            "peers": dict(self.peers),
            "targets": [dict(asdict(target)) for target in self.targets],
            "remarks": list(self.remarks),
        }

    def as_json(self) -> str:
        """Return the report as text, ending in a newline."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n"


def at_least(name: str, goal: str, value: float | None, least: float) -> Target:
    """Return the target of a value that has to be `least` or more; None is a value that was not measured."""
    return Target(
        name, goal, "not measured" if value is None else round(value, 4), None if value is None else value >= least
    )


def at_most(name: str, goal: str, value: float | None, most: float) -> Target:
    """Return the target of a value that must not pass `most`; None is a value that was not measured."""
    return Target(
        name, goal, "not measured" if value is None else round(value, 4), None if value is None else value <= most
    )
