"""The metrics that are read when somebody scrapes: health, shards, queues and the recognisers."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter as PrometheusCounter
from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from bot.health import FaultKind
from voice.asr.fallback import RemoteOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from bot.health import Health
    from bot.monitoring.service_checks import GatewayState
    from voice.asr.scheduler import RecogniserFigures
    from voice.queue_figures import QueueFigures

# The queues between the bot's tasks, by their name in the metrics -> the attribute that holds the queue, and what waits
# there. The owner makes its `QueueFigures`. A test finds every queue of the code and looks it up here.
QUEUES: Final[Mapping[str, str]] = {
    # Of each room, from a packet to a sound.
    "sound": "voice.transport.handover.Handover._waiting",
    "recognise": "bot.room.conversation.hearing.Hearing._waiting",
    "record": "bot.room.conversation.hearing.Hearing._groups",
    "answer": "bot.brain.reply.Replier._waiting",
    "sentences": "bot.brain.reply.Replier._sentences",
    "play": "voice.speaking.playback.Playback._pieces",
    # Of each room, beside that.
    "store": "compaction.outbox.Outbox._waiting",
    "typed": "bot.room.conversation.typed_talk.TypedTalk._waiting",
    "notices": "bot.participation.participation.Participation._notices",
    "transcript": "bot.room.transcript_writer.TranscriptWriter._lines",
    "realtime_notices": "bot.realtime.bridge.RealtimeBridge._notices",
    "realtime_events": "voice.realtime.connection.RealtimeConnection._outgoing",
    "realtime_reply": "voice.realtime.reply_queue.ReplyQueue._waiting",
    "screen_page": "bot.screen.sharer.Sharer.for_page",
    # Of the process.
    "recogniser": "voice.asr.scheduler.QueuedRecogniser._queue",
    "dashboard": "bot.dashboard.live.Follower._waiting",
}

INFINITE = float("inf")
# How a recognition ended -> the figure that counts it.
RECOGNITIONS = ("completed", "failed", "timed_out", "shed", "cancelled")
# From the time of one packet to the longest wait of a reply.
LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)


class HealthCollector(Collector):
    """Whether the bot can do its work, and why not."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of health."""
        kinds = Counter(fault.kind for fault in self._health.faults())
        yield _gauge("ready", "1 if the bot can do its work, as /readyz says.", float(not kinds))
        yield _gauge("alive", "1 unless only a restart helps, as /healthz says.", not self._health.needs_restart)
        yield _gauge("degraded_parts", "Parts that fail while others stand in for them.", self._health.degraded_count())
        faults = GaugeMetricFamily("roomtone_faults", "Reasons why the bot cannot do its work.", labels=["kind"])
        for kind in FaultKind:
            faults.add_metric([kind.value], kinds[kind])
        yield faults


class ShardCollector(Collector):
    """Which shards of this process are connected to Discord. Before the bot connects there are no such metrics."""

    def __init__(self) -> None:
        self._gateway: GatewayState | None = None

    def set(self, gateway: GatewayState) -> None:
        """Set the connections."""
        self._gateway = gateway

    def collect(self) -> Iterator[Metric]:
        """Yield one series for each shard."""
        if self._gateway is None:
            return
        up = GaugeMetricFamily("roomtone_shard_up", "1 if the shard is connected to Discord.", labels=["shard"])
        for shard in self._gateway.shards.ids:
            up.add_metric([str(shard)], float(shard not in self._gateway.away))
        yield up


class QueueCollector(Collector):
    """How full every queue is, summed over the rooms, and what was dropped. Queues that nobody has now are empty."""

    def __init__(self) -> None:
        self._of_process: list[Callable[[], QueueFigures]] = []
        self._of_rooms: list[Callable[[], Iterable[QueueFigures]]] = []
        self._dropped: Counter[tuple[str, str]] = Counter()

    def add(self, queue: Callable[[], QueueFigures]) -> None:
        """Add a queue of the process."""
        self._of_process.append(queue)

    @contextmanager
    def of_room(self, queues: Callable[[], Iterable[QueueFigures]]) -> Iterator[None]:
        """Add a room's queues while the block runs."""
        self._of_rooms.append(queues)
        try:
            yield
        finally:
            self._of_rooms.remove(queues)

    @property
    def room_count(self) -> int:
        """Return how many rooms are measured."""
        return len(self._of_rooms)

    def add_dropped(self, queue: str, counts: Mapping[str, int]) -> None:
        """Add what a room's queue has dropped, by reason."""
        for reason, count in counts.items():
            self._dropped[queue, reason] += count

    def collect(self) -> Iterator[Metric]:
        """Yield depth, capacity and drops of every queue, and the number of rooms."""
        yield _gauge("rooms", "Rooms in which the bot is.", self.room_count)
        process = [queue() for queue in self._of_process]
        rooms = [figures for queues in self._of_rooms for figures in queues()]
        yield from self._fill((*process, *rooms))
        yield self._drops(process)

    @staticmethod
    def _fill(queues: Iterable[QueueFigures]) -> Iterator[Metric]:
        capacity, waiting = dict.fromkeys(QUEUES, 0.0), Counter[str]()
        for figures in queues:
            waiting[figures.name] += figures.waiting
            limit = INFINITE if figures.capacity is None else figures.capacity
            capacity[figures.name] += limit
        depth = GaugeMetricFamily("roomtone_queue_depth", "How much waits.", labels=["queue"])
        limits = GaugeMetricFamily("roomtone_queue_capacity", "How much may wait.", labels=["queue"])
        for name, limit in capacity.items():
            depth.add_metric([name], waiting[name])
            limits.add_metric([name], limit)
        yield depth
        yield limits

    def _drops(self, process: Iterable[QueueFigures]) -> Metric:
        dropped = CounterMetricFamily(
            "roomtone_queue_dropped", "What was dropped or refused because too much waited.", labels=["queue", "reason"]
        )
        counts = Counter(self._dropped)
        for figures in process:
            for reason, count in figures.dropped.items():
                counts[figures.name, reason] += count
        for (name, reason), count in sorted(counts.items()):
            dropped.add_metric([name, reason], count)
        return dropped


class RecogniserCollector(Collector):
    """What the local recogniser has done. Without one there are no such metrics."""

    def __init__(self) -> None:
        self._figures: list[Callable[[], RecogniserFigures]] = []

    def add(self, figures: Callable[[], RecogniserFigures]) -> None:
        """Add the recogniser."""
        self._figures.append(figures)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the recogniser."""
        for each in self._figures:
            figures = each()
            done = CounterMetricFamily("roomtone_recognitions", "Recognitions by how they ended.", labels=["outcome"])
            for outcome in RECOGNITIONS:
                done.add_metric([outcome], getattr(figures, outcome))
            yield done
            yield _counter("recogniser_reloads", "How often the speech model was loaded again.", figures.reloads)
            yield _counter("recogniser_audio_seconds", "Seconds of sound that were recognised.", figures.audio_s)
            yield _counter("recogniser_compute_seconds", "Seconds that recognising took.", figures.compute_s)


class RemoteRecogniserCollector(Collector):
    """Counts what an endpoint has recognised for this process. It is shown once it is there (`add`)."""

    def __init__(self) -> None:
        self._is_in_use: Callable[[], bool] | None = None
        self._done = PrometheusCounter(
            "roomtone_remote_recognitions",
            "Requests for which a recogniser elsewhere comes first, by what became of them there.",
            ("outcome",),
            registry=None,
        )
        self._time = Histogram(
            "roomtone_remote_recogniser_seconds",
            "Until the answer of a recogniser elsewhere.",
            buckets=LATENCY_BUCKETS,
            registry=None,
        )

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
        yield _gauge(
            "remote_recogniser_in_use",
            "1 unless the process leaves the recogniser alone because it failed.",
            float(self._is_in_use()),
        )
        yield from self._done.collect()
        yield from self._time.collect()


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"roomtone_{name}", text, value=value)


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"roomtone_{name}", text, value=value)
