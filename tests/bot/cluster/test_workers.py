"""How many room workers there are, which are added and which go, and how they read."""

from __future__ import annotations

import pickle
import sys
from dataclasses import fields, make_dataclass, replace

import pytest

from bot.cluster.room_offer import MOST_WORKERS, RoomOffer, workers_count
from bot.cluster.worker_actor import WorkerReport
from bot.cluster.worker_folder import OfferedProcesses
from bot.cluster.worker_names import worker_name
from bot.cluster.workers import WorkerChanges, WorkerState, changes_for, names_to_remove
from bot.errors import SetupError

OFFER = RoomOffer("10.0.0.1:8572", 4)


def report(process: int | None, offered: OfferedProcesses, problem: str = "") -> WorkerReport:
    """Return what a worker on the machine `north` tells."""
    return WorkerReport("north", OFFER, process, offered, problem)


def working(name: str, offer: RoomOffer = OFFER) -> WorkerState:
    """Return a worker that runs and tells its offer."""
    return WorkerState(name, "a", "10.0.0.1", replace(report(7, OfferedProcesses(busy=1)), offer=offer))


def test_workers_without_a_machine_go_first_and_then_the_last_ones() -> None:
    """So as few rooms as can be have to move; ten comes after nine."""
    names = {number: worker_name("10.0.0.1:8572", number) for number in (1, 2, 9, 10)}
    there = [WorkerState(names[1]), *(WorkerState(names[number], "a", "10.0.0.1") for number in (2, 9, 10))]
    assert names_to_remove(there, 3) == [names[1]]
    assert names_to_remove(there, 1) == [names[9], names[10], names[1]]
    assert names_to_remove(there, 4) == []


HERE = [worker_name("10.0.0.1:8572", number) for number in (1, 2, 3)]
ELSEWHERE = [worker_name("10.0.0.9:8572", number) for number in (1, 2)]
OTHER = replace(OFFER, rooms_each=2)
OTHERS = [working(name, replace(OFFER, gateway="10.0.0.9:8572")) for name in ELSEWHERE]


@pytest.mark.parametrize(
    ("there", "count", "changes"),
    [
        ([], 2, WorkerChanges(start=tuple(HERE[:2]))),
        ([working(HERE[0]), working(HERE[1])], 2, WorkerChanges()),
        ([working(HERE[0])], 3, WorkerChanges(start=tuple(HERE[1:]))),
        ([working(HERE[0]), working(HERE[1])], 1, WorkerChanges(leave=(HERE[1],))),
        ([working(HERE[0])], 0, WorkerChanges(leave=(HERE[0],))),
        ([working(HERE[0], OTHER), working(HERE[1])], 2, WorkerChanges(replace=(HERE[0],))),
        (
            [working(name, OTHER) for name in HERE],
            2,
            WorkerChanges(leave=(HERE[2],), replace=tuple(HERE[:2])),
        ),
        ([WorkerState(HERE[0]), working(HERE[1])], 2, WorkerChanges(leave=(HERE[0],), start=(HERE[0],))),
        ([WorkerState(HERE[0], "a", "10.0.0.1")], 1, WorkerChanges()),
    ],
)
@pytest.mark.parametrize("others", [[], OTHERS])
def test_only_the_workers_of_one_gateway_process_change(
    there: list[WorkerState], count: int, changes: WorkerChanges, others: list[WorkerState]
) -> None:
    """Those that serve another one stay, whatever they offer. One that does not answer is left in peace."""
    assert changes_for(OFFER, count, [*others, *there]) == changes


@pytest.mark.parametrize(
    ("worker", "line"),
    [
        (
            WorkerState("worker-1"),
            "worker-1: waits for a machine that has as much free as it reserves",
        ),
        (WorkerState("worker-1", "a", "10.0.0.2"), "worker-1: on 10.0.0.2, starts"),
        (
            WorkerState("worker-1", "a", "10.0.0.2", report(7, OfferedProcesses(2, 1, 1))),
            "worker-1: on 10.0.0.2 (north), processes: 2 with rooms, 1 waiting, 1 being loaded",
        ),
        (
            WorkerState("worker-1", "a", "10.0.0.2", report(7, OfferedProcesses(loading=1), "[error] away")),
            "worker-1: on 10.0.0.2 (north), processes: 0 with rooms, 0 waiting, 1 being loaded. It said: [error] away",
        ),
        (
            WorkerState("worker-1", "a", "10.0.0.2", report(7, OfferedProcesses(waiting=1), "[error] away")),
            "worker-1: on 10.0.0.2 (north), processes: 0 with rooms, 1 waiting",
        ),
        (
            WorkerState("worker-1", "a", "10.0.0.2", report(None, OfferedProcesses(), "There is no database.")),
            "worker-1: on 10.0.0.2 (north), starts. It said: There is no database.",
        ),
    ],
)
def test_a_worker_reads_as_a_sentence(worker: WorkerState, line: str) -> None:
    """The operator reads where it is, how many rooms it has, and what is wrong; a warning that is over is not told."""
    assert worker.line() == line


def test_a_worker_has_loaded_once_a_room_could_come() -> None:
    """A worker whose every process has a room has loaded too."""
    assert not WorkerState("worker-1", "a", "10.0.0.2").has_loaded
    assert not WorkerState("worker-1", "a", "10.0.0.2", report(7, OfferedProcesses(loading=1))).has_loaded
    assert WorkerState("worker-1", "a", "10.0.0.2", report(7, OfferedProcesses(waiting=1))).has_loaded
    assert WorkerState("worker-1", "a", "10.0.0.2", report(7, OfferedProcesses(busy=4))).has_loaded


def test_an_offer_tells_what_it_needs_and_what_runs() -> None:
    """Memory for each process, and the command that a person types. Without the cluster's recognisers each process has
    the model that reads what was recognised, and a second copy of the one that recognises.
    """
    assert replace(OFFER, cluster="auto").needs == "1 CPU, 2.4 GB"
    assert OFFER.needs == "1 CPU, 3.6 GB"
    words = OFFER.command("worker-3")
    assert words[1:5] == ["-m", "bot", "cluster", "rooms"]
    assert words[-2:] == ["--worker", "worker-3"]


def test_a_mistyped_number_fills_no_cluster() -> None:
    """It is refused with the bounds."""
    assert workers_count(0) == 0
    with pytest.raises(SetupError, match=str(MOST_WORKERS)):
        workers_count(MOST_WORKERS + 1)
    with pytest.raises(SetupError, match="less than nothing"):
        RoomOffer("10.0.0.1:8572", 1, cpus=-1)


@pytest.mark.parametrize("kept", [OFFER, OfferedProcesses(1, 2, 3), report(7, OfferedProcesses(busy=1), "a problem")])
def test_another_release_reads_what_it_knows_of_a_worker_by_name(
    kept: RoomOffer | OfferedProcesses | WorkerReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines are updated one after the other: one with a field more gives no field the value of another."""
    kind = type(kept)
    known = [(each.name, each.type) for each in fields(kind)]
    newer = make_dataclass(kind.__name__, [("more", str), *known], frozen=True, namespace={"__module__": __name__})
    written = pickle.dumps(kept)
    monkeypatch.setattr(sys.modules[kind.__module__], kind.__name__, newer)
    read = pickle.loads(written)
    assert isinstance(read, newer)
    assert {name: getattr(read, name) for name, _ in known} == {name: getattr(kept, name) for name, _ in known}
