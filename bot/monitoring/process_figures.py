"""What a room's process measures itself, as plain figures that can be told to the gateway process.

A room's events are told anyway, and counted there. These are the others: models, the store, the recogniser, the queues
of the process, and the process itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.metrics_core import Metric


class FigureKind(StrEnum):
    """How the figures of several processes become one. The values are Prometheus' names of its types."""

    # Rises. Summed over all processes there have been.
    COUNTER = "counter"
    # As a counter: how many were up to each bound, and the sum.
    HISTOGRAM = "histogram"
    # Summed over the processes that are there.
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Definition:
    """A metric. `name`: of its family, without `_total`. `bounds`: of a histogram's buckets, as `le` has them.
    `of_each`: the processes are not summed, which would hide the one that is late or full. Each that is there has its
    own series.
    """

    name: str
    text: str
    kind: FigureKind
    labels: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    of_each: bool = False

    @property
    def count(self) -> int:
        """Return how many values a series has."""
        return len(self.bounds) + 1 if self.kind is FigureKind.HISTOGRAM else 1


@dataclass(frozen=True, slots=True)
class Series:
    """One series now. `metric`: the name of its definition; `labels`: the values, in its order. `values`: one, or of a
    histogram how many were up to each bound, and then the sum.
    """

    metric: str
    labels: tuple[str, ...]
    values: tuple[float, ...]


def series_of(families: Iterable[Metric], definitions: dict[str, Definition]) -> Iterator[Series]:
    """Yield the series of metrics that are defined."""
    for family in families:
        definition = definitions.get(family.name)
        if definition is None:
            continue
        found: dict[tuple[str, ...], list[float]] = {}
        for sample in family.samples:
            # The count of a histogram is that of its last bucket, and when a metric was made means nothing elsewhere.
            if sample.name.endswith(("_count", "_created")):
                continue
            labels = tuple(sample.labels[label] for label in definition.labels)
            found.setdefault(labels, []).append(sample.value)
        for labels, values in found.items():
            # A queue that takes any number has no capacity to add up.
            if len(values) == definition.count and all(map(math.isfinite, values)):
                yield Series(definition.name, labels, tuple(values))
