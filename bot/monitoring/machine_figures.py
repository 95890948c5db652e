"""The figures of rooms' processes, by machine, as more series of the gateway process's metrics.

A process tells all its figures every few seconds. Counters are the sums over all processes that there have been, so
they do not fall when one ends; gauges those over the processes that are there. What is told of each process by itself
(`Definition.of_each`) has its number on the machine, and is gone with it. There are few series, whatever a process
tells: only metrics that are defined here, only so many labels, machines and processes.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog
from prometheus_client.metrics_core import Metric

from bot.monitoring.process_figures import Definition, FigureKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from bot.monitoring.process_figures import Series

log = structlog.get_logger()

LABEL: Final = "machine"
# The lowest number that no other process of the machine has: the next process gets it again, so there are few.
PROCESS_LABEL: Final = "process"
# Of a machine. Further ones have no figures of their own; each takes about 1 GB of memory.
MOST_PROCESSES: Final = 32
# More machines are counted together.
MOST_MACHINES: Final = 100
OTHER_MACHINES: Final = "other"
# A bot with four models, an endpoint and a pool of recognisers has 77 series.
MOST_SERIES: Final = 400
_LABEL_CHARS: Final = 80
# A process that has told nothing for as long is not there.
GONE_AFTER_S: Final = 35.0
# And will not come back: it hands its rooms over after a minute without the gateway process.
FORGOTTEN_AFTER_S: Final = 600.0

_Key = tuple[str, tuple[str, ...]]


@dataclass(slots=True)
class _Process:
    """What a process has told last."""

    number: int
    told_at: float
    last: dict[_Key, tuple[float, ...]] = field(default_factory=dict)
    refused: bool = False


class MachineFigures:
    """Takes what processes tell. `definitions`: the metrics that they may tell. `now`: returns monotonic seconds."""

    def __init__(self, definitions: Iterable[Definition], now: Callable[[], float]) -> None:
        self._definitions = {definition.name: definition for definition in definitions}
        self._now = now
        self._processes: dict[tuple[str, str], _Process] = {}
        self._totals: dict[str, dict[_Key, tuple[float, ...]]] = {}

    def take(self, machine: str, run_id: str, told: Sequence[Series], *, ran_before: bool = False) -> None:
        """Take what the process of a run has measured since it began. `ran_before`: it ran for another gateway process,
        which has counted the figures that are told first.
        """
        now = self._now()
        machine = machine if machine in self._totals or len(self._totals) < MOST_MACHINES else OTHER_MACHINES
        for gone in [run for run, each in self._processes.items() if now - each.told_at > FORGOTTEN_AFTER_S]:
            del self._processes[gone]
        process = self._processes.get((machine, run_id))
        counts = process is not None or not ran_before
        if process is None:
            process = self._processes[machine, run_id] = _Process(self._free_number(machine), now)
        elif now - process.told_at > GONE_AFTER_S:
            # Another one may have got its number.
            process.number = self._free_number(machine)
        process.told_at = now
        totals = self._totals.setdefault(machine, {})
        for series in told[:MOST_SERIES]:
            key = (series.metric, series.labels)
            definition = self._definitions.get(series.metric)
            if definition is None or not _is_sound(series, definition):
                self._refuse(process, machine, run_id)
                continue
            kept = process.last if definition.of_each else totals
            if key not in kept and len(kept) >= MOST_SERIES:
                self._refuse(process, machine, run_id)
                continue
            if not definition.of_each:
                before = totals.setdefault(key, (0.0,) * definition.count)
                if definition.kind is not FigureKind.GAUGE and counts:
                    totals[key] = _sum(before, _risen(process.last.get(key), series.values))
            process.last[key] = series.values

    def _free_number(self, machine: str) -> int:
        taken = {process.number for process in self._there(machine)}
        return next(number for number in itertools.count(1) if number not in taken)

    def _there(self, machine: str) -> Iterator[_Process]:
        """Yield the processes of a machine that are there."""
        now = self._now()
        for (where, _), process in self._processes.items():
            if where == machine and now - process.told_at <= GONE_AFTER_S:
                yield process

    @staticmethod
    def _refuse(process: _Process, machine: str, run_id: str) -> None:
        if not process.refused:
            process.refused = True
            log.warning("process_figures_refused", machine=machine, run_id=run_id)

    def merged(self, families: Iterable[Metric]) -> Iterator[Metric]:
        """Yield metrics with the series of all machines added, and after them those that only processes have."""
        added = self._samples()
        for family in families:
            _add(family, added.pop(family.name, []))
            yield family
        for name, rows in added.items():
            definition = self._definitions[name]
            family = Metric(name, definition.text, definition.kind.value)
            _add(family, rows)
            yield family

    def _samples(self) -> dict[str, list[tuple[str, dict[str, str], float]]]:
        found: dict[str, list[tuple[str, dict[str, str], float]]] = defaultdict(list)
        for machine, totals in self._totals.items():
            now = self._live(machine)
            for key, values in totals.items():
                definition = self._definitions[key[0]]
                shown = now.get(key, (0.0,)) if definition.kind is FigureKind.GAUGE else values
                labels = {**dict(zip(definition.labels, key[1], strict=True)), LABEL: machine}
                found[key[0]].extend(_rows(definition, labels, shown))
            for process in self._there(machine):
                if process.number > MOST_PROCESSES:
                    continue
                itself = {LABEL: machine, PROCESS_LABEL: str(process.number)}
                for key, values in process.last.items():
                    definition = self._definitions[key[0]]
                    if definition.of_each:
                        labels = {**dict(zip(definition.labels, key[1], strict=True)), **itself}
                        found[key[0]].extend(_rows(definition, labels, values))
        return found

    def _live(self, machine: str) -> dict[_Key, tuple[float, ...]]:
        """Return the gauges of a machine, summed over the processes that are there."""
        found = dict[_Key, tuple[float, ...]]()
        for process in self._there(machine):
            for key, values in process.last.items():
                definition = self._definitions[key[0]]
                if definition.kind is FigureKind.GAUGE and not definition.of_each:
                    found[key] = _sum(found[key], values) if key in found else values
        return found


def _is_sound(series: Series, definition: Definition) -> bool:
    """Return whether a series has the labels and values of its metric."""
    if len(series.labels) != len(definition.labels) or len(series.values) != definition.count:
        return False
    if not all(len(label) <= _LABEL_CHARS and label.isprintable() for label in series.labels):
        return False
    if not all(math.isfinite(value) and value >= 0 for value in series.values):
        return False
    counts = series.values[:-1]
    return all(before <= after for before, after in itertools.pairwise(counts))


def _risen(before: tuple[float, ...] | None, now: tuple[float, ...]) -> tuple[float, ...]:
    """Return by how much each value has risen. A series in which one has fallen was begun anew."""
    if before is None or any(new < old for old, new in zip(before, now, strict=True)):
        return now
    return tuple(new - old for old, new in zip(before, now, strict=True))


def _sum(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _rows(
    definition: Definition, labels: dict[str, str], values: tuple[float, ...]
) -> Iterator[tuple[str, dict[str, str], float]]:
    match definition.kind:
        case FigureKind.HISTOGRAM:
            for bound, count in zip(definition.bounds, values[:-1], strict=True):
                yield f"{definition.name}_bucket", {**labels, "le": bound}, count
            yield f"{definition.name}_count", labels, values[-2]
            yield f"{definition.name}_sum", labels, values[-1]
        case FigureKind.COUNTER:
            yield f"{definition.name}_total", labels, values[0]
        case FigureKind.GAUGE:
            yield definition.name, labels, values[0]


def _add(family: Metric, rows: Iterable[tuple[str, dict[str, str], float]]) -> None:
    for name, labels, value in rows:
        family.add_sample(name, labels, value)
