"""The report of a benchmark: the machine, the figures, and the targets.

One JSON object `{"bench", "machine", "ours", "targets", "remarks"}`; `roomtone bench` shows it as tables.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from bot.errors import BotError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.machine import Machine

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class BenchmarkError(BotError):
    """Base class of the benchmarks' errors. The message is a plain sentence with the remedy."""


class TranscriptFormatError(BenchmarkError):
    """A supplied conversation cannot be read: the user must change the file."""


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
