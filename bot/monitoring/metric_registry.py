"""Makes the metrics of a process, and knows which of them a room's process measures itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram

from bot.monitoring.collectors import PROCESS_DEFINITIONS
from bot.monitoring.process_figures import Definition, FigureKind

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

# From the time of one packet to the longest wait of a reply.
LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)


class MetricRegistry:
    """The metrics that were made here. `collectors`: those and what else is shown.

    `own`: what a room's process measures itself and tells the gateway process, with the `definitions` of that; all
    others are counted from the rooms' events.
    """

    def __init__(self) -> None:
        self.collectors = CollectorRegistry(auto_describe=True)
        self.own: list[Collector | Counter | Histogram] = []
        self.definitions = {each.name: each for each in PROCESS_DEFINITIONS}

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Make a counter, shown as `roomtone_NAME_total`. `text`: what it counts. `labels`: their names."""
        return Counter(name, text, labels, namespace="roomtone", registry=self.collectors)

    def histogram(self, name: str, text: str, *labels: str, buckets: tuple[float, ...] = LATENCY_BUCKETS) -> Histogram:
        """Make a histogram, shown as `roomtone_NAME_…`. `text`, `labels`: see `counter`. `buckets`: upper bounds."""
        return Histogram(name, text, labels, namespace="roomtone", registry=self.collectors, buckets=buckets)

    def own_counter(self, name: str, text: str, *labels: str) -> Counter:
        """Make a counter of what a room's process counts itself. See `counter`."""
        made = self.counter(name, text, *labels)
        self._add_own(made, Definition(f"roomtone_{name}", text, FigureKind.COUNTER, labels))
        return made

    def own_histogram(
        self, name: str, text: str, *labels: str, buckets: tuple[float, ...] = LATENCY_BUCKETS, of_each: bool = False
    ) -> Histogram:
        """Make a histogram of what a room's process measures itself. See `histogram`. `of_each`: it is shown of each
        process, not summed for each machine.
        """
        made = self.histogram(name, text, *labels, buckets=buckets)
        bounds = histogram_bounds(buckets)
        self._add_own(made, Definition(f"roomtone_{name}", text, FigureKind.HISTOGRAM, labels, bounds, of_each))
        return made

    def add_own(self, collector: Collector, definitions: tuple[Definition, ...]) -> None:
        """Add metrics of what a room's process measures itself, which `collector` yields."""
        self.collectors.register(collector)
        self._add_own(collector, *definitions)

    def _add_own(self, made: Collector | Counter | Histogram, *definitions: Definition) -> None:
        self.own.append(made)
        self.definitions.update((each.name, each) for each in definitions)


def histogram_bounds(buckets: tuple[float, ...]) -> tuple[str, ...]:
    """Return the bounds of a histogram's buckets, as `le` has them."""
    return (*(str(bound) for bound in buckets), "+Inf")
