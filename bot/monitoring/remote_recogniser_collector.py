"""What recognisers elsewhere, an endpoint or the cluster's, have done for this process. Where it has none, there are no
such metrics.
"""

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

    from voice.asr.observed import RecognitionService

DONE = "roomtone_remote_recognitions"
DONE_TEXT = "Requests for which a recogniser elsewhere comes first, by what became of them there."
TIME = "roomtone_remote_recogniser_seconds"
TIME_TEXT = "Until the answer of a recogniser elsewhere."
IN_USE = "roomtone_remote_recogniser_in_use"
IN_USE_TEXT = "1 unless the process leaves the recogniser alone because it failed."
WHICH = "recogniser"
REMOTE_RECOGNISER_DEFINITIONS = (
    Definition(DONE, DONE_TEXT, FigureKind.COUNTER, (WHICH, "outcome")),
    Definition(TIME, TIME_TEXT, FigureKind.HISTOGRAM, (WHICH,), bounds=histogram_bounds(LATENCY_BUCKETS)),
    Definition(IN_USE, IN_USE_TEXT, FigureKind.GAUGE, (WHICH,), of_each=True),
)


class RemoteRecogniserCollector(Collector):
    """Counts what recognisers elsewhere answer. Each is shown once it is there (`add`)."""

    def __init__(self) -> None:
        self._is_in_use: dict[RecognitionService, Callable[[], bool]] = {}
        self._done = Counter(DONE, DONE_TEXT, (WHICH, "outcome"), registry=None)
        self._time = Histogram(TIME, TIME_TEXT, (WHICH,), buckets=LATENCY_BUCKETS, registry=None)

    def add(self, which: RecognitionService, is_in_use: Callable[[], bool]) -> None:
        """Show a recogniser. `is_in_use`: returns whether it is asked at present."""
        self._is_in_use[which] = is_in_use
        # A rate needs the 0 before the first request.
        self._time.labels(which.value)
        for outcome in RemoteOutcome:
            self._done.labels(which.value, outcome.value)

    def observe(self, which: RecognitionService, outcome: RemoteOutcome, seconds: float) -> None:
        """Count what became of a request, and how long an answer took."""
        self._done.labels(which.value, outcome.value).inc()
        if outcome is RemoteOutcome.COMPLETED:
            self._time.labels(which.value).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the recognisers that are there."""
        if not self._is_in_use:
            return
        in_use = GaugeMetricFamily(IN_USE, IN_USE_TEXT, labels=(WHICH,))
        for which, is_in_use in self._is_in_use.items():
            in_use.add_metric((which.value,), float(is_in_use()))
        yield in_use
        yield from self._done.collect()
        yield from self._time.collect()
