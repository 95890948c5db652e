"""The metrics of one process, in Prometheus' format. docs/operations.md lists them.

Every label has few values that the code fixes: no id and no name of a person, server or room is ever one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from bot.health import FaultKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from bot.health import Health

PREFIX = "roomtone"


class Metrics:
    """Everything that is measured. One for each process; it is no global, so tests have their own."""

    def __init__(self, health: Health) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self._registry)
        self._registry.register(HealthCollector(health))

    def scrape(self) -> tuple[bytes, str]:
        """Return all metrics and their content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


class HealthCollector(Collector):
    """Whether the bot can do its work, and why not. It asks when somebody scrapes."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of health."""
        faults = [fault.kind for fault in self._health.faults()]
        yield _gauge("ready", "1 if the bot can do its work, as /readyz says.", float(not faults))
        yield _gauge("degraded_parts", "Parts that fail while others stand in for them.", self._health.degraded_count())
        found = GaugeMetricFamily(f"{PREFIX}_faults", "Reasons why the bot cannot do its work.", labels=["kind"])
        for kind in FaultKind:
            found.add_metric([kind.value], faults.count(kind))
        yield found


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", text, value=value)
