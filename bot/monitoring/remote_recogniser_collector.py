"""What an endpoint has recognised for this process. Where it asks none, there are no such metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bot.monitoring.metric_registry import LATENCY_BUCKETS, histogram_bounds
from bot.monitoring.process_figures import Definition, FigureKind
from voice.asr.observed import RemoteOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.metrics_core import Metric

DONE = "roomtone_remote_recognitions"
DONE_TEXT = "Requests for which a recogniser elsewhere comes first, by what became of them there."
TIME = "roomtone_remote_recogniser_seconds"
TIME_TEXT = "Until the answer of a recogniser elsewhere."
IN_USE = "roomtone_remote_recogniser_in_use"
IN_USE_TEXT = "1 unless the process leaves the recogniser alone because it failed."
REMOTE_RECOGNISER_DEFINITIONS = (
    Definition(DONE, DONE_TEXT, FigureKind.COUNTER, ("outcome",)),
    Definition(TIME, TIME_TEXT, FigureKind.HISTOGRAM, bounds=histogram_bounds(LATENCY_BUCKETS)),
    Definition(IN_USE, IN_USE_TEXT, FigureKind.GAUGE, of_each=True),
)


class RemoteRecogniserCollector(Collector):
    """Counts what an endpoint answers. It is shown once it is there (`add`)."""

    def __init__(self) -> None:
        self._is_in_use: Callable[[], bool] | None = None
        self._done = Counter(DONE, DONE_TEXT, ("outcome",), registry=None)
        self._time = Histogram(TIME, TIME_TEXT, buckets=LATENCY_BUCKETS, registry=None)

    def add(self, is_in_use: Callable[[], bool]) -> None:
        """Show the endpoint. `is_in_use`: returns whether it is asked at present."""
        self._is_in_use = is_in_use
        # A rate needs the 0 before the first request.
        for outcome in RemoteOutcome:
            self._done.labels(outcome.value)

    def observe(self, outcome: RemoteOutcome, seconds: float) -> None:
        """Count what became of a request, and how long an answer took."""
        self._done.labels(outcome.value).inc()
        if outcome is RemoteOutcome.COMPLETED:
            self._time.observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the endpoint, if there is one."""
        if self._is_in_use is None:
            return
        yield GaugeMetricFamily(IN_USE, IN_USE_TEXT, value=float(self._is_in_use()))
        yield from self._done.collect()
        yield from self._time.collect()
