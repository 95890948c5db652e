"""The metrics that are read when somebody scrapes: health, shards, queues and the local recogniser."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from bot.health import Actor, FaultKind, Health

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from bot.shards import Shards
    from voice.asr.scheduler import RecogniserFigures
    from voice.queue_figures import QueueFigures

# The queues between the bot's tasks, by their name in the metrics -> the attribute that holds the queue, and what waits
# there. The owner makes its `QueueFigures`. A test finds every queue of the code and looks it up here.
QUEUES: Final[Mapping[str, str]] = {
    # Of each room, from a packet to a sound.
    "sound": "voice.transport.handover.Handover._waiting",
    "recognise": "bot.conversation.hearing.UtteranceBacklog._waiting",
    "record": "bot.conversation.hearing.Hearing._groups",
    "answer": "bot.brain.replier.Replier.waiting",
    "play": "voice.speaking.playback.Playback._pieces",
    # Of each room, beside that.
    "store": "compaction.store_queue.StoreQueue._waiting",
    "typed": "bot.conversation.typed_talk.TypedTalk._waiting",
    "notices": "bot.participation.participation.Participation.notices",
    "transcript": "bot.posts.transcript.TranscriptWriter._lines",
    "realtime_notices": "bot.realtime.bridge.RealtimeBridge._notices",
    "realtime_events": "voice.realtime.connection.RealtimeConnection._outgoing",
    "realtime_reply": "voice.realtime.reply_queue.ReplyQueue._waiting",
    "screen_page": "bot.screen.sharer.Sharer.for_page",
    # Of the process.
    "recogniser": "voice.asr.scheduler.QueuedRecogniser._queue",
    "dashboard": "bot.dashboard.live.Follower.waiting",
}

INFINITE = float("inf")
# How a recognition ended -> the figure that counts it.
RECOGNITIONS = ("completed", "failed", "timed_out", "shed", "cancelled")


class Scraped(Collector):
    """What is asked when somebody scrapes. `sources`: each returns some metrics."""

    def __init__(self) -> None:
        self.sources: list[Callable[[], Iterable[Metric]]] = []

    def collect(self) -> Iterator[Metric]:
        for source in self.sources:
            yield from source()


def gauge(name: str, text: str, value: float) -> Metric:
    """Return a metric without labels."""
    return GaugeMetricFamily(f"roomtone_{name}", text, value=value)


def health_metrics(health: Health) -> Iterator[Metric]:
    """Yield what is wrong, and whether the bot can do its work all the same."""
    wrong = health.faults()
    counts = Counter((fault.kind, fault.acts, fault.blocks) for fault in wrong)
    yield gauge("ready", "1 if the bot can do its work, as /readyz says.", not any(fault.blocks for fault in wrong))
    yield gauge(
        "alive", "1 unless only a restart helps, as /healthz says.", not any(each.needs_restart for each in wrong)
    )
    faults = GaugeMetricFamily("roomtone_faults", "What is wrong.", labels=["kind", "acts", "blocks"])
    for kind, acts, blocks in product(FaultKind, Actor, (True, False)):
        faults.add_metric([kind.value, acts.value, "yes" if blocks else "no"], counts[kind, acts, blocks])
    yield faults


def shard_metrics(shards: Shards, away: Container[int]) -> Iterator[Metric]:
    """Yield which shards of this process are connected to Discord. `away`: those whose connection is lost."""
    up = GaugeMetricFamily("roomtone_shard_up", "1 if the shard is connected to Discord.", labels=["shard"])
    for shard in shards.ids:
        up.add_metric([str(shard)], float(shard not in away))
    yield up


def recogniser_metrics(figures: RecogniserFigures) -> Iterator[Metric]:
    """Yield what the local recogniser has done."""
    done = CounterMetricFamily("roomtone_recognitions", "Recognitions by how they ended.", labels=["outcome"])
    for outcome in RECOGNITIONS:
        done.add_metric([outcome], getattr(figures, outcome))
    yield done
    for name, text, value in (
        ("reloads", "How often the speech model was loaded again.", figures.reloads),
        ("audio_seconds", "Seconds of sound that were recognised.", figures.audio_s),
        ("compute_seconds", "Seconds that recognising took.", figures.compute_s),
    ):
        yield CounterMetricFamily(f"roomtone_recogniser_{name}", text, value=value)


def queue_metrics(
    process: Iterable[QueueFigures], rooms: Iterable[QueueFigures], dropped_by_rooms: Counter[tuple[str, str]]
) -> Iterator[Metric]:
    """Yield how full every queue is, summed over the rooms, and what was dropped, by queue and reason. Queues that
    nobody has now are empty. `process`, `rooms`: the queues that somebody has.
    """
    capacity, waiting, dropped = dict.fromkeys(QUEUES, 0.0), Counter[str](), Counter(dropped_by_rooms)
    for figures in process:
        dropped.update({(figures.name, reason): count for reason, count in figures.dropped.items()})
    for figures in (*process, *rooms):
        waiting[figures.name] += figures.waiting
        capacity[figures.name] += INFINITE if figures.capacity is None else figures.capacity
    depth = GaugeMetricFamily("roomtone_queue_depth", "How much waits.", labels=["queue"])
    limits = GaugeMetricFamily("roomtone_queue_capacity", "How much may wait.", labels=["queue"])
    for name, limit in capacity.items():
        depth.add_metric([name], waiting[name])
        limits.add_metric([name], limit)
    drops = CounterMetricFamily(
        "roomtone_queue_dropped", "What was dropped or refused because too much waited.", labels=["queue", "reason"]
    )
    for labels, count in sorted(dropped.items()):
        drops.add_metric(labels, count)
    yield from (depth, limits, drops)
