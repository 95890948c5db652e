"""The metrics of one process, in Prometheus' format. Each says what it measures.

Rooms report by their events (`Metrics.room`), the other parts are asked when somebody scrapes. Every label has few
values that the code or the operator's settings fix: no id and no name of a person, server or room is ever one.
"""

from __future__ import annotations

from collections import Counter as Tally
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from bot import events
from bot.dropped_sounds import REASONS
from bot.llm.model_calls import CallMeter
from bot.monitoring.collectors import (
    Scraped,
    gauge,
    health_metrics,
    queue_metrics,
    recogniser_metrics,
    shard_metrics,
)
from bot.monitoring.overload import Overload
from compaction.model import TurnKind
from voice.asr.fallback import FallbackRecogniser, RemoteOutcome
from voice.transport.counters import PacketCounters

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from bot.clock import Clock
    from bot.cost import Cost
    from bot.health import Health
    from bot.llm.model_calls import ModelCall
    from bot.shards import Shards
    from voice.asr.scheduler import QueuedRecogniser
    from voice.queue_figures import QueueFigures

# From the time of one packet to the longest wait of a reply.
LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
# A model that folds takes up to a minute.
FOLD_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0)
LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
MEASURE_LAG_EVERY_S: Final = 5.0
# The stages from a packet to a sound, in order; the last two are sums.
STAGES = (
    "receive",
    "endpoint",
    "queue",
    "recognise",
    "group",
    "store",
    "decide",
    "model",
    "synthesis",
    "end_to_text",
    "end_to_sound",
)
FRAME_OUTCOMES = ("lost", "recovered", "concealed")
# What the packet counters count that is no outcome of a packet. The queue `sound` has the overruns.
_NO_OUTCOME = ("received", "padded", "held", "talkspurts", "overrun_frames", *FRAME_OUTCOMES)
PACKET_OUTCOMES = tuple(field.name for field in fields(PacketCounters) if field.name not in _NO_OUTCOME)
FOLD_OUTCOMES = ("landed", "failed")
# The parts of a room that report failures.
PROBLEMS = ("memory_mode", "notice", "realtime", "recogniser", "reply", "session", "store", "transcript")
# A label that is no single word would be a mistake of ours; it must not become a new series for each event.
OTHER = "other"
_LABEL_CHARS = 32


@dataclass(eq=False, slots=True)
class _Room:
    """What the counters of a room said last."""

    packets: Mapping[str, int] = field(default_factory=dict)
    queues: tuple[QueueFigures, ...] = ()


class Metrics(CallMeter):
    """Everything that is measured. One for each process; it is no global, so tests have their own."""

    def __init__(self, health: Health) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        self._queues: list[Callable[[], QueueFigures]] = []
        self._rooms: list[_Room] = []
        self._dropped_by_rooms: Tally[tuple[str, str]] = Tally()
        self._scraped = Scraped()
        self._scraped.sources += [partial(health_metrics, health), self._room_metrics]
        self._overload = Overload()
        health.add_check(self._overload.faults)
        ProcessCollector(registry=self._registry)
        self._registry.register(self._scraped)

        self._round_trip = self._histogram("voice_round_trip_seconds", "How long voice servers take to answer.")
        self._stages = self._histogram("stage_seconds", "Time of each stage from a packet to a sound.", "stage")
        self._packets = self._counter("packets", "Received packets by what became of them.", "outcome")
        self._frames = self._counter(
            "frames", "Frames that were missing in order, by how they were replaced.", "outcome"
        )
        self._turns = self._counter("turns", "Recorded turns.", "kind")
        self._dropped = self._counter("speech_dropped", "Sounds that became no turn.", "reason")
        self._heard_again = self._counter("speech_heard_again", "Doubtful texts, recognised again.", "outcome")
        self._decisions = self._counter(
            "decisions", "Turns of speech by whether the bot answers, and why.", "answer", "reason"
        )
        self._replies = self._counter("replies", "Replies by how they ended.", "outcome")
        self._spoken = self._counter("spoken_seconds", "Seconds that the bot has spoken.")
        self._folds = self._counter("folds", "Folds of turns into the summary.", "outcome")
        self._fold_time = self._histogram("fold_seconds", "Duration of a fold.", "outcome", buckets=FOLD_BUCKETS)
        self._problems = self._counter("problems", "Failures in rooms.", "where")
        self._calls = self._counter("model_calls", "Calls of models.", "model", "purpose", "outcome")
        self._tokens = self._counter("model_tokens", "Tokens sent to and received from models.", "model", "direction")
        self._used = self._counter("server_tokens", "Tokens that each server has used.", "guild_id")
        self._paid = self._counter("server_dollars", "US dollars of tokens whose price is known.", "guild_id")
        self._model_time = self._histogram("model_seconds", "Duration of a call of a model.", "model", "purpose")
        self._first_token = self._histogram("model_first_token_seconds", "Until a model's first token.", "model")
        self._lag = self._histogram("event_loop_lag_seconds", "How late the event loop is.", buckets=LAG_BUCKETS)
        # They are shown once there is a recogniser elsewhere.
        self._elsewhere = Counter(
            "roomtone_remote_recognitions",
            "Requests for which a recogniser elsewhere comes first, by what became of them there.",
            ("outcome",),
            registry=None,
        )
        self._elsewhere_time = Histogram(
            "roomtone_remote_recogniser_seconds",
            "Until the answer of a recogniser elsewhere.",
            buckets=LATENCY_BUCKETS,
            registry=None,
        )
        # The series whose labels are known: a rate needs the 0 before the first event.
        for metric, labels in (
            (self._stages, STAGES),
            (self._packets, PACKET_OUTCOMES),
            (self._frames, FRAME_OUTCOMES),
            (self._turns, TurnKind),
            (self._dropped, REASONS),
            (self._heard_again, events.SecondHearing),
            (self._replies, events.ReplyOutcome),
            (self._folds, FOLD_OUTCOMES),
            (self._fold_time, FOLD_OUTCOMES),
            (self._problems, PROBLEMS),
            (self._elsewhere, RemoteOutcome),
        ):
            for label in labels:
                metric.labels(str(label))

    def scrape(self) -> tuple[bytes, str]:
        """Return all metrics and their content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def record_use(self, guild_id: int, cost: Cost) -> None:
        """Count what a server has used."""
        self._used.labels(str(guild_id)).inc(cost.tokens)
        self._paid.labels(str(guild_id)).inc(cost.dollars)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        """Make a counter, shown as `roomtone_NAME_total`. `text`: what it counts. `labels`: their names."""
        return Counter(name, text, labels, namespace="roomtone", registry=self._registry)

    def _histogram(self, name: str, text: str, *labels: str, buckets: tuple[float, ...] = LATENCY_BUCKETS) -> Histogram:
        """Make a histogram, shown as `roomtone_NAME_…`. `text`, `labels`: see `_counter`. `buckets`: upper bounds."""
        return Histogram(name, text, labels, namespace="roomtone", registry=self._registry, buckets=buckets)

    def _room_metrics(self) -> Iterator[Metric]:
        yield gauge("rooms", "Rooms in which the bot is.", len(self._rooms))
        in_rooms = [queue for room in self._rooms for queue in room.queues]
        yield from queue_metrics([queue() for queue in self._queues], in_rooms, self._dropped_by_rooms)

    # -- what reports ---------------------------------------------------------------------------------------------

    @contextmanager
    def room(self) -> Iterator[events.Observer]:
        """Measure a room while the block runs. Yields what takes the room's events."""
        room = _Room()
        self._rooms.append(room)
        try:
            yield partial(self._observe, room)
        finally:
            self._rooms.remove(room)

    def add_queue(self, queue: Callable[[], QueueFigures]) -> None:
        """Measure a queue of the process."""
        self._queues.append(queue)

    def add_shards(self, shards: Shards, away: Container[int]) -> None:
        """Measure the connections to Discord. `away`: has the shards whose connection is lost by then."""
        self._scraped.sources.append(partial(shard_metrics, shards, away))

    def add_recogniser(self, recogniser: QueuedRecogniser) -> None:
        """Measure the local recogniser, and its queue."""
        self.add_queue(lambda: recogniser.queue)
        self._scraped.sources.append(lambda: recogniser_metrics(recogniser.figures))

    def add_remote_recogniser(self, recogniser: FallbackRecogniser) -> None:
        """Measure a recogniser elsewhere, which is asked unless it has an outage."""
        text = "1 unless the process leaves the recogniser alone because it failed."
        self._scraped.sources += [
            lambda: [gauge("remote_recogniser_in_use", text, float(recogniser.outage is None))],
            self._elsewhere.collect,
            self._elsewhere_time.collect,
        ]

    def on_remote_recogniser(self, outcome: RemoteOutcome, seconds: float) -> None:
        """Count what became of a request to a recogniser elsewhere, and how many seconds an answer took."""
        self._elsewhere.labels(outcome.value).inc()
        if outcome is RemoteOutcome.COMPLETED:
            self._elsewhere_time.observe(seconds)

    def on_model_call(self, call: ModelCall) -> None:
        """Count a call of a model that is billed in tokens."""
        self._calls.labels(call.model, call.purpose, call.outcome).inc()
        self._tokens.labels(call.model, "sent").inc(call.prompt_tokens)
        self._tokens.labels(call.model, "received").inc(call.completion_tokens)
        self._model_time.labels(call.model, call.purpose).observe(call.duration_s)
        if call.first_token_s is not None:
            self._first_token.labels(call.model).observe(call.first_token_s)

    async def measure_lag(self, clock: Clock) -> None:
        """Measure every few seconds how late the event loop is, until cancelled. What keeps it busy delays every room
        and page.
        """
        while True:
            before = clock.monotonic()
            await clock.sleep(MEASURE_LAG_EVERY_S)
            late_s = max(0.0, clock.monotonic() - before - MEASURE_LAG_EVERY_S)
            self._lag.observe(late_s)
            self._overload.on_lag(late_s)

    # -- a room's events --------------------------------------------------------------------------------------------

    def _observe(self, room: _Room, event: events.Event) -> None:
        match event:
            case events.ConnectionChanged():
                for outcome, count in _risen(room.packets, event.counters):
                    if outcome in FRAME_OUTCOMES:
                        self._frames.labels(outcome).inc(count)
                    elif outcome in PACKET_OUTCOMES:
                        self._packets.labels(outcome).inc(count)
                room.packets = dict(event.counters)
                if event.round_trip_s is not None:
                    self._round_trip.observe(event.round_trip_s)
            case events.QueuesMeasured():
                before = {queue.name: queue.dropped for queue in room.queues}
                for queue in event.queues:
                    for reason, count in _risen(before.get(queue.name, {}), queue.dropped):
                        self._dropped_by_rooms[queue.name, _word(reason)] += count
                room.queues = event.queues
            case _:
                self._count(event)

    def _count(self, event: events.Event) -> None:
        match event:
            case events.SoundReceived():
                self._stage("receive", event.delay_s)
            case events.TurnRecorded():
                self._turns.labels(event.turn.kind.value).inc()
                for spoken in event.utterances:
                    utterance = spoken.utterance
                    self._stage("endpoint", utterance.closed_at - utterance.ended_at)
                    waited_s = max(0.0, spoken.begun_at - utterance.closed_at)
                    self._stage("queue", waited_s)
                    self._overload.on_waited(waited_s)
                    self._stage("recognise", spoken.text_at - spoken.begun_at)
                    self._stage("end_to_text", spoken.text_at - utterance.ended_at)
            case events.TurnDecided():
                self._stage("group", event.released_at - event.spoken.complete_at)
                self._stage("store", event.stored_at - event.released_at)
                self._stage("decide", event.at - event.stored_at)
                self._decisions.labels("yes" if event.answers else "no", _word(event.reason)).inc()
            case events.SpeechDropped():
                self._dropped.labels(_word(event.reason)).inc()
            case events.SecondHearingEnded():
                self._heard_again.labels(event.outcome.value).inc()
            case events.ReplyFinished():
                self._add_reply(event)
            case events.CompactionLanded() | events.CompactionFailed():
                outcome = "landed" if isinstance(event, events.CompactionLanded) else "failed"
                self._folds.labels(outcome).inc()
                self._fold_time.labels(outcome).observe(event.latency_ms / 1000)
            case events.Problem():
                self._problems.labels(_word(event.where)).inc()

    def _add_reply(self, reply: events.ReplyFinished) -> None:
        self._replies.labels(reply.outcome.value).inc()
        if reply.first_token_at is not None:
            self._stage("model", reply.first_token_at - reply.begun_at)
        if reply.synthesis_s is not None:
            self._stage("synthesis", reply.synthesis_s)
        if reply.first_audio_at is not None:
            self._spoken.inc(reply.ended_at - reply.first_audio_at)
            if reply.asked_at is not None:
                self._stage("end_to_sound", reply.first_audio_at - reply.asked_at)

    def _stage(self, stage: str, seconds: float) -> None:
        self._stages.labels(stage).observe(max(0.0, seconds))


def _risen(before: Mapping[str, int], now: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield by how much each count has risen. A count that has fallen was begun anew."""
    for name, count in now.items():
        rise = count - before.get(name, 0)
        yield name, rise if rise >= 0 else count


def _word(label: str) -> str:
    """Return a label for what the code calls by a word."""
    is_word = len(label) <= _LABEL_CHARS and label.replace("_", "").isalnum() and label.isascii()
    return label if is_word else OTHER
