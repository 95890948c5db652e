"""What rooms' processes measure themselves is in the metrics of the gateway process, by machine."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.health import Health
from bot.llm.model_calls import ModelCall
from bot.monitoring.machine_figures import (
    GONE_AFTER_S,
    MOST_MACHINES,
    MOST_PROCESSES,
    MOST_SERIES,
    OTHER_MACHINES,
    MachineFigures,
)
from bot.monitoring.metrics import Metrics
from bot.monitoring.process_figures import Definition, FigureKind, Series
from bot.remote.messages.figure_messages import FiguresTold
from bot.remote.messages.frames import Head, content_of, frame_of, head_of
from bot.remote.room_side.room_figures import TELL_EVERY_S, ProcessFigures
from tests.bot.monitoring.test_metrics import new_metrics, samples, value
from tests.fakes.clock import FakeClock
from voice.asr.observed import RecognitionService, RemoteOutcome
from voice.asr.scheduler import RecogniserFigures
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.remote.link.gateway_link import GatewayLink

CALL = ModelCall("llama", "reply", "answered", 1200, 80, first_token_s=0.4, duration_s=2.0)
MEMORY = "process_resident_memory_bytes"
# What each process has of itself, and no machine the sum of.
OF_EACH = {
    "process_cpu_seconds",
    MEMORY,
    "process_virtual_memory_bytes",
    "process_open_fds",
    "process_max_fds",
    "process_start_time_seconds",
    "roomtone_event_loop_lag_seconds",
}
CALLS = {"model": "llama", "purpose": "reply", "outcome": "answered"}


class Process:
    """A room's process on a machine. `run_id`: the number of its run."""

    def __init__(self, machine: str = "north", run_id: str = "one") -> None:
        self.machine = machine
        self.run_id = run_id
        self.metrics = Metrics(Health(FakeClock()))
        self.waiting = 0
        self.metrics.add_queue(lambda: QueueFigures("recogniser", self.waiting, 8, {"full": self.waiting}))

    def call(self, times: int = 1) -> None:
        """Call a model and the store."""
        for _ in range(times):
            self.metrics.on_model_call(CALL)
            self.metrics.on_store("append_turn", 0.02, failed=False)


class Gateway:
    """A gateway process."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.metrics = new_metrics()
        self.figures = self.metrics.add_machines(self.clock)

    def hear(self, process: Process, *, ran_before: bool = False) -> None:
        """Take what a process tells, as it comes over a link."""
        told = FiguresTold(process.metrics.own_series())
        _, body = head_of(frame_of(Head("tell", 0, "FiguresTold"), told, FiguresTold))
        series = content_of(body, FiguresTold).series
        self.figures.take(process.machine, process.run_id, series, ran_before=ran_before)

    def memory(self) -> dict[tuple[str, str], float]:
        """Return the memory of each process that is there, by machine and number."""
        return {
            (labels["machine"], labels["process"]): held
            for name, labels, held in (
                (name, dict(pairs), held) for (name, pairs), held in samples(self.metrics).items()
            )
            if name == MEMORY and "process" in labels
        }

    def tell_memory(self, held: float, machine: str = "north", run_id: str = "one") -> None:
        """Take how much memory a process holds."""
        self.figures.take(machine, run_id, [Series(MEMORY, (), (held,))])

    def calls(self, machine: str = "north") -> float:
        """Return how often models were called on a machine."""
        return value(self.metrics, "model_calls_total", **CALLS, machine=machine)


def test_what_a_process_measures_is_in_the_metrics_of_the_gateway_process() -> None:
    """As in one process, with the machine; beside what the gateway process has measured itself."""
    gateway, process = Gateway(), Process()
    alone = set(samples(gateway.metrics))
    process.call()
    process.waiting = 3
    figures = RecogniserFigures(completed=5, failed=1, reloads=2, audio_s=9.5, compute_s=3.25)
    process.metrics.add_recogniser(lambda: figures)
    gateway.metrics.on_model_call(CALL)
    gateway.hear(process)
    told = {
        (name, frozenset(pair for pair in labels if pair[0] != "machine")): count
        for (name, labels), count in samples(gateway.metrics).items()
        if ("machine", "north") in labels and not any(label == "process" for label, _ in labels)
    }
    itself = samples(process.metrics)
    names = ("model", "store", "recogni")
    assert told
    for key, count in itself.items():
        if key[0].removeprefix("roomtone_").startswith(names) and not key[0].endswith("_created"):
            assert told.pop(key) == count, key
    assert told.pop(("roomtone_queue_depth", frozenset({("queue", "recogniser")}))) == 3
    assert told.pop(("roomtone_queue_capacity", frozenset({("queue", "recogniser")}))) == 8
    assert told.pop(("roomtone_queue_dropped_total", frozenset({("queue", "recogniser"), ("reason", "full")}))) == 3
    assert told == {}
    assert value(gateway.metrics, "model_calls_total", **CALLS) == 1
    assert alone <= set(samples(gateway.metrics))
    types = re.findall(r"# TYPE (\S+) ", gateway.metrics.scrape()[0].decode())
    assert len(types) == len(set(types)), "a family is described once"


def test_what_is_counted_from_events_is_not_told_again() -> None:
    """A room's turns, packets and replies come to the gateway process as events."""
    process = Process()
    process.call()
    assert {series.metric.removeprefix("roomtone_") for series in process.metrics.own_series()} == {
        "model_calls",
        "model_tokens",
        "model_seconds",
        "model_first_token_seconds",
        "store_seconds",
        "store_failures",
        "queue_depth",
        "queue_capacity",
        "queue_dropped",
        *(name.removeprefix("roomtone_") for name in OF_EACH),
    }


def test_each_process_has_its_own_lag_cpu_time_memory_and_open_files() -> None:
    """They are this process's own, beside those of the gateway process, which have no labels."""
    gateway, process = Gateway(), Process()
    for late_s in (0.02, 0.3):
        process.metrics.on_lag(late_s)
    gateway.hear(process)
    found = {
        name: count
        for (name, labels), count in samples(gateway.metrics).items()
        if {("machine", "north"), ("process", "1")} <= labels and "_bucket" not in name
    }
    assert {re.sub("_(total|count|sum)$", "", name) for name in found} == OF_EACH
    assert found["roomtone_event_loop_lag_seconds_count"] == 2
    assert found["roomtone_event_loop_lag_seconds_sum"] == pytest.approx(0.32)
    late = {"le": "0.025", "machine": "north", "process": "1"}
    assert value(gateway.metrics, "event_loop_lag_seconds_bucket", **late) == 1
    assert found[MEMORY] > 10_000_000
    assert found["process_cpu_seconds_total"] > 0
    assert found["process_open_fds"] >= 3
    assert samples(gateway.metrics)[MEMORY, frozenset()] > 10_000_000
    assert value(gateway.metrics, "event_loop_lag_seconds_count") == 0


def test_what_recognisers_elsewhere_did_for_rooms_in_processes_is_shown_of_their_machine() -> None:
    """Requests and times are summed for each recogniser; each process says by itself whether it uses it."""
    gateway = Gateway()
    cluster, endpoint = RecognitionService
    for run_id, is_in_use, outcome in (("one", True, RemoteOutcome.COMPLETED), ("two", False, RemoteOutcome.TIMED_OUT)):
        process = Process(run_id=run_id)
        process.metrics.add_remote_recogniser(cluster, lambda is_in_use=is_in_use: is_in_use)  # type: ignore[misc]
        process.metrics.add_remote_recogniser(endpoint, lambda: True)
        for took_s in (0.3, 1.2):
            process.metrics.on_remote_recogniser(cluster, outcome, took_s)
        process.metrics.on_remote_recogniser(endpoint, RemoteOutcome.FAILED, 0.1)
        gateway.hear(process)
    metrics, its = gateway.metrics, {"recogniser": "cluster", "machine": "north"}
    for outcome in RemoteOutcome:
        counted = value(metrics, "remote_recognitions_total", outcome=outcome.value, **its)
        assert counted == (2 if outcome in {RemoteOutcome.COMPLETED, RemoteOutcome.TIMED_OUT} else 0)
    failed = {**its, "recogniser": "endpoint", "outcome": "failed"}
    assert value(metrics, "remote_recognitions_total", **failed) == 2
    assert value(metrics, "remote_recogniser_seconds_sum", **its) == pytest.approx(1.5)
    assert value(metrics, "remote_recogniser_seconds_bucket", le="0.5", **its) == 1
    name = "roomtone_remote_recogniser_in_use"
    in_use = {labels: shown for (found, labels), shown in samples(metrics).items() if found == name}
    assert in_use == {
        frozenset({("machine", "north"), ("process", number), ("recogniser", which)}): shown
        for number, which, shown in (
            ("1", "cluster", 1),
            ("2", "cluster", 0),
            ("1", "endpoint", 1),
            ("2", "endpoint", 1),
        )
    }


def test_a_process_has_only_so_many_series_of_its_own() -> None:
    """Whatever it tells in one message after another, and however it labels them."""
    gateway = Gateway()
    name = "roomtone_remote_recogniser_in_use"
    for first in range(0, 2 * MOST_SERIES, MOST_SERIES):
        told = [Series(name, (str(number),), (1.0,)) for number in range(first, first + MOST_SERIES)]
        gateway.figures.take("north", "one", told)
    shown = [labels for found, labels in samples(gateway.metrics) if found == name]
    assert len(shown) == MOST_SERIES


def test_the_figures_of_a_process_are_gone_with_it() -> None:
    """The others of the machine keep their numbers, and the next process gets the one that is free."""
    gateway = Gateway()
    for run_id, held in (("one", 1.0), ("two", 2.0), ("three", 3.0)):
        gateway.tell_memory(held, run_id=run_id)
    gateway.tell_memory(4.0, machine="south")
    north = {("north", "1"): 1.0, ("north", "2"): 2.0, ("north", "3"): 3.0}
    assert gateway.memory() == {**north, ("south", "1"): 4.0}
    gateway.clock.advance(GONE_AFTER_S)
    for run_id, held in (("one", 1.5), ("three", 3.5)):
        gateway.tell_memory(held, run_id=run_id)
    gateway.clock.advance(1)
    assert gateway.memory() == {("north", "1"): 1.5, ("north", "3"): 3.5}
    gateway.tell_memory(5.0, run_id="four")
    # It was only silent for a while.
    gateway.tell_memory(2.5, run_id="two")
    assert gateway.memory() == {("north", "1"): 1.5, ("north", "2"): 5.0, ("north", "3"): 3.5, ("north", "4"): 2.5}


def test_the_processes_of_a_machine_are_summed_and_none_is_counted_twice() -> None:
    """Also if several rooms of a process tell the same."""
    gateway = Gateway()
    one, other, south = Process(), Process(run_id="two"), Process("south")
    for process, times in ((one, 2), (other, 3), (south, 4)):
        process.call(times)
        process.waiting = times
        gateway.hear(process)
        gateway.hear(process)
    assert (gateway.calls(), gateway.calls("south")) == (5, 4)
    assert value(gateway.metrics, "queue_depth", queue="recogniser", machine="north") == 5
    assert value(gateway.metrics, "store_seconds_sum", operation="append_turn", machine="north") == pytest.approx(0.1)


def test_a_process_that_ends_takes_nothing_away() -> None:
    """Its counters stay and the next process adds to them; what waited there is gone."""
    gateway, process = Gateway(), Process()
    process.call(3)
    process.waiting = 2
    gateway.hear(process)
    gateway.clock.advance(GONE_AFTER_S + 1)
    assert gateway.calls() == 3
    assert value(gateway.metrics, "queue_depth", queue="recogniser", machine="north") == 0
    following = Process(run_id="two")
    following.call()
    gateway.hear(following)
    assert gateway.calls() == 4


def test_what_an_earlier_gateway_process_has_counted_is_not_counted_again() -> None:
    """A room that ran on begins with what its process measures from now on."""
    gateway, process = Gateway(), Process()
    process.call(7)
    gateway.hear(process, ran_before=True)
    assert gateway.calls() == 0
    process.call(2)
    gateway.hear(process, ran_before=True)
    assert gateway.calls() == 2


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.booleans(), st.booleans()), max_size=20))
def test_counters_never_fall(steps: list[tuple[str, int, bool, bool]]) -> None:
    """Whatever processes come, measure and go. All that was told is counted, once."""
    clock, definition = FakeClock(), Definition("roomtone_calls", "Calls.", FigureKind.COUNTER)
    figures = MachineFigures([definition], clock.monotonic)
    runs, total = {"a": (0, 0), "b": (0, 0)}, 0
    for name, times, is_new, is_late in steps:
        run, calls = runs[name]
        runs[name] = run, calls = (run + 1, times) if is_new else (run, calls + times)
        clock.advance(GONE_AFTER_S + 1 if is_late else 1.0)
        figures.take("north", f"{name}{run}", [Series(definition.name, (), (calls,))])
        total += times
        (family,) = figures.merged([])
        assert [sample.value for sample in family.samples] == [total]


GOOD = Series("roomtone_model_tokens", ("llama", "sent"), (3.0,))


@pytest.mark.parametrize(
    "series",
    [
        replace(GOOD, metric="roomtone_turns"),
        replace(GOOD, metric="process_cpu_seconds"),
        Series("process_cpu_seconds", (), (-1.0,)),
        Series("process_cpu_seconds", ("one",), (1.0,)),
        Series("process_threads", (), (1.0,)),
        replace(GOOD, metric='a"}\n'),
        replace(GOOD, labels=("llama",)),
        replace(GOOD, labels=("llama", "sent", "north")),
        replace(GOOD, labels=("l" * 81, "sent")),
        replace(GOOD, labels=("a\nb", "sent")),
        replace(GOOD, values=()),
        replace(GOOD, values=(1.0, 2.0)),
        replace(GOOD, values=(-1.0,)),
        replace(GOOD, values=(float("nan"),)),
        replace(GOOD, values=(float("inf"),)),
        Series("roomtone_store_seconds", ("load",), (1.0, 2.0)),
        Series("roomtone_store_seconds", ("load",), (*[2.0] * 16, 1.0, 5.0)),
    ],
)
def test_a_series_that_no_room_has_is_refused(series: Series) -> None:
    """The others of the same process are taken."""
    gateway = Gateway()
    gateway.figures.take("north", "one", [series, GOOD])
    found = {key: count for key, count in samples(gateway.metrics).items() if ("machine", "north") in key[1]}
    labels = frozenset({("machine", "north"), ("model", "llama"), ("direction", "sent")})
    assert found == {("roomtone_model_tokens_total", labels): 3.0}


def test_there_are_few_series_whatever_is_told() -> None:
    """So many of a machine, and so many machines; further ones are counted together."""
    gateway = Gateway()
    many = [replace(GOOD, labels=(str(number), "sent")) for number in range(2 * MOST_SERIES)]
    for start in (0, MOST_SERIES):
        gateway.figures.take("north", "one", many[start:])
    for number in range(2 * MOST_MACHINES):
        gateway.figures.take(f"machine-{number}", "one", [GOOD])
    machines = [dict(labels)["machine"] for _, labels in samples(gateway.metrics) if "machine" in dict(labels)]
    assert machines.count("north") == MOST_SERIES
    assert len(set(machines)) == MOST_MACHINES + 1
    assert OTHER_MACHINES in machines


def test_so_many_processes_of_a_machine_have_figures_of_their_own() -> None:
    """What the others share with them is summed all the same."""
    gateway = Gateway()
    for number in range(2 * MOST_PROCESSES):
        gateway.tell_memory(1.0, run_id=str(number))
        gateway.figures.take("north", str(number), [GOOD])
    assert gateway.memory() == {("north", str(number + 1)): 1.0 for number in range(MOST_PROCESSES)}
    tokens = value(gateway.metrics, "model_tokens_total", machine="north", model="llama", direction="sent")
    assert tokens == 3.0 * 2 * MOST_PROCESSES


def _lasting(series: Iterable[Series]) -> list[Series]:
    """Return the figures without those of the process itself, which change by themselves, as its CPU time."""
    return [each for each in series if not each.metric.startswith("process_")]


def test_a_process_tells_its_figures_now_and_then() -> None:
    """Once for all its rooms, and once more when one has ended; never into a link that is lost."""
    told: list[FiguresTold] = []

    class Link:
        is_open = True

        def tell(self, notice: FiguresTold) -> None:
            """Keep it."""
            told.append(notice)

    clock, process = FakeClock(), Process()
    figures = ProcessFigures(process.metrics.own_series, clock)
    one, other = Link(), Link()
    for link in (one, other, one):
        figures.tell(cast("GatewayLink", link), ending=False)
    assert len(told) == 1
    clock.advance(TELL_EVERY_S)
    one.is_open = False
    figures.tell(cast("GatewayLink", one), ending=True)
    assert len(told) == 1
    figures.tell(cast("GatewayLink", other), ending=False)
    process.call()
    figures.tell(cast("GatewayLink", other), ending=True)
    assert len(told) == 3
    assert _lasting(told[-1].series) == _lasting(process.metrics.own_series()) != _lasting(told[0].series)
