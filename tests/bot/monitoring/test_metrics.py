"""What happens in rooms, models and the store is counted, with labels of few values."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot import events
from bot.background_task import background_task
from bot.cost import Cost
from bot.health import Actor, FaultKind, Health, HealthFault
from bot.llm.model_calls import ModelCall
from bot.monitoring.collectors import QUEUES
from bot.monitoring.metrics import MEASURE_LAG_EVERY_S, OTHER, STAGES, Metrics
from bot.texts.text import Text
from tests.bot.monitoring.happened import ADA, HAPPENED, WORDS, new_metrics, samples, value
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock
from voice.asr.fallback import RemoteOutcome
from voice.asr.scheduler import RecogniserFigures
from voice.errors import SynthesisError
from voice.queue_figures import QueueFigures


def played() -> Metrics:
    """Return the metrics of a bot in whose only room all of `HAPPENED` has happened."""
    metrics = new_metrics()
    with metrics.room() as observe:
        for event in HAPPENED:
            observe(event)
    return metrics


def test_the_stages_of_a_turn_are_measured_from_packet_to_sound() -> None:
    """Each stage has its time, in the order of `STAGES`."""
    metrics = played()
    sums = {stage: value(metrics, "stage_seconds_sum", stage=stage) for stage in STAGES}
    assert sums == pytest.approx(
        {
            "receive": 0.07,
            "endpoint": 0.4,
            "queue": 0.1,
            "recognise": 0.3,
            "group": 0.1,
            "store": 0.05,
            "decide": 0.01,
            "model": 0.6,
            "synthesis": 0.2,
            "end_to_text": 0.8,
            "end_to_sound": 2.0,
        }
    )
    assert all(value(metrics, "stage_seconds_count", stage=stage) == 1 for stage in STAGES)


@pytest.mark.parametrize(
    ("name", "labels", "count"),
    [
        ("turns_total", {"kind": "speech"}, 1),
        ("decisions_total", {"answer": "yes", "reason": "named"}, 1),
        ("replies_total", {"outcome": "spoken"}, 1),
        ("replies_total", {"outcome": "skipped"}, 1),
        ("spoken_seconds_total", {}, 3.0),
        ("speech_dropped_total", {"reason": "too_short"}, 1),
        ("speech_heard_again_total", {"outcome": "mended"}, 1),
        ("folds_total", {"outcome": "landed"}, 1),
        ("folds_total", {"outcome": "failed"}, 1),
        ("fold_seconds_sum", {"outcome": "landed"}, 1.5),
        ("problems_total", {"where": "reply"}, 1),
        ("packets_total", {"outcome": "decoded"}, 7),
        ("packets_total", {"outcome": "late"}, 1),
        # Each packet is counted once, by its outcome.
        ("packets_total", {"outcome": "received"}, 0),
        ("frames_total", {"outcome": "lost"}, 2),
    ],
)
def test_what_happens_in_a_room_is_counted(name: str, labels: dict[str, str], count: float) -> None:
    """Turns, decisions, replies, drops, folds and failures are counted by kind."""
    assert value(played(), name, **labels) == count


@pytest.fixture
def metrics() -> Metrics:
    """Metrics that nothing was counted by."""
    return new_metrics()


def test_counters_of_rooms_add_up_over_restarts(metrics: Metrics) -> None:
    """Packets and drops are counted by how far a room's counters rise. A new room begins at 0 again."""

    def connection(decoded: int) -> events.Event:
        return events.ConnectionChanged("connected", {"decoded": decoded}, 1.0)

    def queues(overloaded: int) -> events.Event:
        return events.QueuesMeasured((QueueFigures("recognise", overloaded, 68, {"overloaded": overloaded}),), 1.0)

    with metrics.room() as first, metrics.room() as second:
        for observe in (first, second):
            for count in (5, 5, 8):
                observe(connection(count))
                observe(queues(count))
        assert value(metrics, "rooms") == 2
        assert value(metrics, "queue_depth", queue="recognise") == 16
        assert value(metrics, "queue_capacity", queue="recognise") == 136
        first(connection(1))
    assert value(metrics, "packets_total", outcome="decoded") == 17
    assert value(metrics, "queue_dropped_total", queue="recognise", reason="overloaded") == 16
    assert (value(metrics, "rooms"), value(metrics, "queue_depth", queue="recognise")) == (0, 0)


def test_queues_of_the_process_are_read_when_somebody_asks() -> None:
    """Every queue of the list has a depth and a capacity, also if nobody has it. What may always wait is infinite."""
    metrics, waiting = new_metrics(), 0
    metrics.add_queue(lambda: QueueFigures("recogniser", waiting, 32, {"interim": 4}))
    waiting = 7
    assert value(metrics, "queue_depth", queue="recogniser") == 7
    assert value(metrics, "queue_dropped_total", queue="recogniser", reason="interim") == 4
    names = {dict(labels)["queue"] for (name, labels) in samples(metrics) if name == "roomtone_queue_depth"}
    assert names == set(QUEUES)
    with metrics.room() as observe:
        observe(events.QueuesMeasured((QueueFigures("store", 2, None),), 1.0))
        assert value(metrics, "queue_capacity", queue="store") == float("inf")


def test_models_and_recogniser_are_measured(metrics: Metrics) -> None:
    """Tokens and time of each model, and recognitions."""
    metrics.on_model_call(ModelCall("gpt-4.1-mini", "reply", "answered", 900, 40, 0.5, 1.5))
    metrics.on_model_call(ModelCall("gpt-4.1-mini", "summary", "failed", 100, 0, None, 2.0))
    metrics.add_recogniser(
        SimpleNamespace(  # type: ignore[arg-type]
            queue=QueueFigures("recogniser", 0, 32),
            figures=RecogniserFigures(completed=9, failed=2, timed_out=1, audio_s=30.0, compute_s=3.0),
        )
    )
    for name, labels, expected in (
        ("model_tokens_total", {"model": "gpt-4.1-mini", "direction": "sent"}, 1000),
        ("model_tokens_total", {"model": "gpt-4.1-mini", "direction": "received"}, 40),
        ("model_calls_total", {"model": "gpt-4.1-mini", "purpose": "summary", "outcome": "failed"}, 1),
        ("model_first_token_seconds_sum", {"model": "gpt-4.1-mini"}, 0.5),
        ("recognitions_total", {"outcome": "completed"}, 9),
        ("recogniser_compute_seconds_total", {}, 3.0),
    ):
        assert value(metrics, name, **labels) == expected, name


def test_use_is_told_by_server(metrics: Metrics) -> None:
    """So that an operator sees who costs what."""
    for tokens in (30, 12):
        metrics.record_use(7, Cost(1, tokens, dollars=0.25))
    shown, _ = metrics.scrape()
    assert b'roomtone_server_tokens_total{guild_id="7"} 42.0' in shown
    assert b'roomtone_server_dollars_total{guild_id="7"} 0.5' in shown


@pytest.mark.parametrize("outcome", RemoteOutcome)
def test_what_became_of_a_request_to_a_recogniser_elsewhere_is_counted(
    metrics: Metrics, outcome: RemoteOutcome
) -> None:
    """Each outcome by itself, from 0 on. Only an answer has a time. Without such a recogniser there are no such
    metrics.
    """
    assert "roomtone_remote" not in metrics.scrape()[0].decode()
    elsewhere = SimpleNamespace(outage=None)
    metrics.add_remote_recogniser(elsewhere)  # type: ignore[arg-type]
    metrics.on_remote_recogniser(outcome, 0.25)
    counted = {
        labels: count
        for (name, labels), count in samples(metrics).items()
        if name == "roomtone_remote_recognitions_total"
    }
    assert counted == {frozenset({("outcome", each.value)}): float(each is outcome) for each in RemoteOutcome}
    answers = int(outcome is RemoteOutcome.COMPLETED)
    assert value(metrics, "remote_recogniser_seconds_count") == answers
    assert value(metrics, "remote_recogniser_seconds_sum") == 0.25 * answers
    assert value(metrics, "remote_recogniser_in_use") == 1
    elsewhere.outage = "away"
    assert value(metrics, "remote_recogniser_in_use") == 0


def test_health_is_in_the_metrics() -> None:
    """Each fault is counted by its kind, who must act and whether it blocks. The bot is ready if none does."""
    health = Health(FakeClock())
    metrics = Metrics(health)

    def faults(kind: str, acts: str, blocks: str) -> float:
        return value(metrics, "faults", kind=kind, acts=acts, blocks=blocks)

    assert (value(metrics, "ready"), faults("starting", "nobody", "yes")) == (0, 1)
    health.started()
    assert (value(metrics, "ready"), value(metrics, "alive"), faults("starting", "nobody", "yes")) == (1, 1, 0)
    health.add_missing(FaultKind.VOICE, Text("My voice"), instead=Text("I write"), problem=SynthesisError("None."))
    assert (value(metrics, "ready"), faults("voice", "operator", "no")) == (1, 1)
    deaf = HealthFault(FaultKind.ROOM_DEAF, Text("I hear nobody."), acts=Actor.MEMBERS)
    health.rooms = lambda: [deaf, deaf]
    assert (value(metrics, "ready"), faults("room_deaf", "members", "yes")) == (0, 2)


def test_no_word_id_or_name_is_in_the_metrics() -> None:
    """Whatever happens in a room, the scrape has none of what people said, nor their ids, nor those of servers."""
    text = played().scrape()[0].decode()
    for secret in (WORDS, "walrus", str(ADA), "500", "ab5739", "u1"):
        assert f'"{secret}' not in text
        assert f'{secret}"' not in text


@settings(max_examples=20)
@given(st.lists(st.text(max_size=80)))
def test_a_label_is_one_word(reasons: list[str]) -> None:
    """A reason that is no word of ours makes no series of its own."""
    metrics = new_metrics()
    with metrics.room() as observe:
        for reason in reasons:
            observe(events.SpeechDropped("u", ADA, reason, "", 1.0, 2.0, 3.0))
    seen = samples(metrics, "roomtone_speech_dropped_total")
    words = {each for each in reasons if each.replace("_", "").isalnum() and each.isascii() and len(each) <= 32}
    assert {dict(labels)["reason"] for (_, labels), count in seen.items() if count} == words | (
        {OTHER} if set(reasons) - words else set()
    )


async def test_how_late_the_loop_was_is_measured_every_few_seconds() -> None:
    """Also that it was not; until its block is left."""
    clock, metrics, late_s = FakeClock(), new_metrics(), 0.0
    async with background_task(metrics.measure_lag(clock), name="loop-lag"):
        await until(lambda: bool(clock.sleeping))
        for more_s in (0.25, 0.0, 1.5):
            late_s += more_s
            clock.advance(MEASURE_LAG_EVERY_S + more_s)
            await clock.until_somebody_sleeps()
            assert value(metrics, "event_loop_lag_seconds_sum") == pytest.approx(late_s)
    assert clock.sleeping == 0
