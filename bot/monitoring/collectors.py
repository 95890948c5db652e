"""The metrics that are read when somebody scrapes: health, shards, machines, queues and the recogniser."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from bot.health import FaultKind
from bot.machine_load import HERE
from bot.monitoring.machine_figures import LABEL, MOST_MACHINES, OTHER_MACHINES
from bot.monitoring.process_figures import Definition, FigureKind
from bot.monitoring.queues import QUEUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prometheus_client.metrics_core import Metric

    from bot.health import Health
    from bot.machine_load import MachineLoad
    from bot.monitoring.service_checks import GatewayState
    from voice.asr.scheduler import RecogniserFigures
    from voice.queue_figures import QueueFigures

INFINITE = float("inf")
# How a recognition ended -> the figure that counts it.
RECOGNITIONS = ("completed", "failed", "timed_out", "shed", "cancelled")
QUEUE_DEPTH = "How much waits."
QUEUE_CAPACITY = "How much may wait."
QUEUE_DROPPED = "What was dropped or refused because too much waited."
RECOGNITIONS_DONE = "Recognitions by how they ended."
RELOADS = "How often the speech model was loaded again."
AUDIO = "Seconds of sound that were recognised."
COMPUTE = "Seconds that recognising took."
# What each process of rooms has of these itself.
PROCESS_DEFINITIONS = (
    Definition("roomtone_queue_depth", QUEUE_DEPTH, FigureKind.GAUGE, ("queue",)),
    Definition("roomtone_queue_capacity", QUEUE_CAPACITY, FigureKind.GAUGE, ("queue",)),
    Definition("roomtone_queue_dropped", QUEUE_DROPPED, FigureKind.COUNTER, ("queue", "reason")),
    Definition("roomtone_recognitions", RECOGNITIONS_DONE, FigureKind.COUNTER, ("outcome",)),
    Definition("roomtone_recogniser_reloads", RELOADS, FigureKind.COUNTER),
    Definition("roomtone_recogniser_audio_seconds", AUDIO, FigureKind.COUNTER),
    Definition("roomtone_recogniser_compute_seconds", COMPUTE, FigureKind.COUNTER),
    # Of `prometheus_client.ProcessCollector`.
    Definition("process_cpu_seconds", "Total user and system CPU time.", FigureKind.COUNTER, of_each=True),
    Definition("process_resident_memory_bytes", "Resident memory size.", FigureKind.GAUGE, of_each=True),
    Definition("process_virtual_memory_bytes", "Virtual memory size.", FigureKind.GAUGE, of_each=True),
    Definition("process_open_fds", "Number of open file descriptors.", FigureKind.GAUGE, of_each=True),
    Definition("process_max_fds", "Maximum number of open file descriptors.", FigureKind.GAUGE, of_each=True),
    Definition("process_start_time_seconds", "When the process was started.", FigureKind.GAUGE, of_each=True),
)


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


class MachineCollector(Collector):
    """How many rooms and processes for rooms each machine has. `loads`: returns it. A machine that is gone has none."""

    def __init__(self, loads: Callable[[], Sequence[MachineLoad]]) -> None:
        self._loads = loads

    def collect(self) -> Iterator[Metric]:
        """Yield the rooms and processes of each machine. Too many machines, and those with one name, are summed."""
        rooms, processes = Counter[str](), Counter[tuple[str, str]]()
        for number, load in enumerate(self._loads()):
            machine = (load.machine or HERE) if number < MOST_MACHINES else OTHER_MACHINES
            rooms[machine] += load.rooms
            processes[machine, "with_rooms"] += load.with_rooms
            processes[machine, "waiting"] += load.waiting
        of_rooms = GaugeMetricFamily("roomtone_machine_rooms", "Rooms that run on each machine.", labels=[LABEL])
        for machine, count in rooms.items():
            of_rooms.add_metric([machine], count)
        yield of_rooms
        of_processes = GaugeMetricFamily(
            "roomtone_machine_processes",
            "Processes for rooms on each machine: those that have rooms, and loaded ones that wait for one.",
            labels=[LABEL, "state"],
        )
        for labels, count in processes.items():
            of_processes.add_metric(labels, count)
        yield of_processes


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
        yield from self._fill((*process, *rooms), dict.fromkeys(QUEUES, 0.0))
        yield self._drops(process, self._dropped)

    def collect_process(self) -> Iterator[Metric]:
        """Yield depth, capacity and drops of the process's own queues."""
        process = [queue() for queue in self._of_process]
        yield from self._fill(process, {})
        yield self._drops(process, {})

    @staticmethod
    def _fill(queues: Iterable[QueueFigures], capacity: dict[str, float]) -> Iterator[Metric]:
        waiting = Counter[str]()
        for figures in queues:
            waiting[figures.name] += figures.waiting
            limit = INFINITE if figures.capacity is None else figures.capacity
            capacity[figures.name] = capacity.get(figures.name, 0.0) + limit
        depth = GaugeMetricFamily("roomtone_queue_depth", QUEUE_DEPTH, labels=["queue"])
        limits = GaugeMetricFamily("roomtone_queue_capacity", QUEUE_CAPACITY, labels=["queue"])
        for name, limit in capacity.items():
            depth.add_metric([name], waiting[name])
            limits.add_metric([name], limit)
        yield depth
        yield limits

    @staticmethod
    def _drops(process: Iterable[QueueFigures], already: Mapping[tuple[str, str], int]) -> Metric:
        dropped = CounterMetricFamily("roomtone_queue_dropped", QUEUE_DROPPED, labels=["queue", "reason"])
        counts = Counter(already)
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
            done = CounterMetricFamily("roomtone_recognitions", RECOGNITIONS_DONE, labels=["outcome"])
            for outcome in RECOGNITIONS:
                done.add_metric([outcome], getattr(figures, outcome))
            yield done
            yield _counter("recogniser_reloads", RELOADS, figures.reloads)
            yield _counter("recogniser_audio_seconds", AUDIO, figures.audio_s)
            yield _counter("recogniser_compute_seconds", COMPUTE, figures.compute_s)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"roomtone_{name}", text, value=value)


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"roomtone_{name}", text, value=value)
