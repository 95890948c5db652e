"""How room workers that leave are replaced, with a cluster that only keeps its books."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from bot.cluster import workers as module
from bot.cluster.address import ClusterError
from bot.cluster.room_offer import RoomOffer
from bot.cluster.worker_actor import WorkerReport
from bot.cluster.worker_folder import OfferedProcesses
from bot.cluster.worker_names import serves, worker_name
from bot.cluster.workers import MovedWorkers, WorkerState, move_workers, set_workers

if TYPE_CHECKING:
    from collections.abc import Sequence

A, B = RoomOffer("10.0.0.1:8572", rooms_each=2), RoomOffer("10.0.0.9:8572")
LOADED = OfferedProcesses(waiting=1)


def working(offer: RoomOffer, number: int, node_id: str) -> WorkerState:
    """Return a worker on a machine, which has a loaded process."""
    name = worker_name(offer.gateway, number)
    return WorkerState(name, node_id, "10.0.0.2", WorkerReport("south", offer, 7, LOADED, ""))


@dataclass
class Books:
    """The cluster's workers. `machine`: to which new ones come; empty: none has room. `told`: what was asked for."""

    there: list[WorkerState]
    machine: str = "other"
    told: list[str] = field(default_factory=list)

    async def states(self, gateway: str | None = None) -> list[WorkerState]:
        return [worker for worker in self.there if gateway is None or serves(worker.name, gateway)]

    async def add(self, names: Sequence[str], offer: RoomOffer) -> None:
        for name in names:
            self.told.append(f"start {name}")
            came = replace(working(offer, 1, self.machine), name=name)
            self.there.append(came if self.machine else WorkerState(name))

    async def remove(self, name: str) -> None:
        self.told.append(f"end {name}")
        self.there = [worker for worker in self.there if worker.name != name]


def books(monkeypatch: pytest.MonkeyPatch, *there: WorkerState) -> Books:
    """Let the module read and write these books, and wait for nobody."""
    made = Books([*there])
    monkeypatch.setattr(module, "worker_states", made.states)
    monkeypatch.setattr(module, "_add", made.add)
    monkeypatch.setattr(module, "_remove", made.remove)
    monkeypatch.setattr(module, "MOVE_S", 0.0)
    return made


@pytest.mark.asyncio
async def test_each_worker_has_a_successor_of_its_gateway_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its offer. Those of other machines stay."""
    kept = books(monkeypatch, working(A, 1, "gone"), working(A, 2, "other"), working(B, 1, "gone"))
    assert await move_workers("gone") == MovedWorkers()
    names = [worker_name(A.gateway, number) for number in (1, 3)], [worker_name(B.gateway, number) for number in (1, 2)]
    assert kept.told == [words for old, new in names for words in (f"start {new}", f"end {old}")]
    assert {worker.name: worker.report.offer for worker in kept.there if worker.report is not None} == {
        worker_name(A.gateway, 2): A,
        worker_name(A.gateway, 3): A,
        worker_name(B.gateway, 2): B,
    }


@pytest.mark.asyncio
async def test_workers_that_shall_offer_something_else_are_replaced_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If all ended first, every room would go to the bot's own machine, and stay there."""
    kept = books(monkeypatch, working(A, 1, "one"), working(A, 2, "other"))
    offer = replace(A, rooms_each=4)
    await set_workers(offer, 2)
    one, two, three = (worker_name(A.gateway, number) for number in (1, 2, 3))
    assert kept.told == [f"start {three}", f"end {one}", f"start {one}", f"end {two}"]
    assert [worker.report.offer for worker in kept.there if worker.report is not None] == [offer, offer]


@pytest.mark.asyncio
async def test_a_worker_that_does_not_answer_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays, and is named; the others of its machine move."""
    silent = replace(working(A, 1, "gone"), report=None)
    kept = books(monkeypatch, silent, working(A, 2, "gone"))
    assert await move_workers("gone") == MovedWorkers(silent=(silent.name,))
    assert silent in kept.there
    assert kept.told == [f"start {worker_name(A.gateway, 3)}", f"end {worker_name(A.gateway, 2)}"]


@pytest.mark.asyncio
async def test_a_worker_that_no_machine_has_room_for_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rooms have to go where they can, because the machine leaves."""
    kept = books(monkeypatch, working(A, 1, "gone"))
    kept.machine = ""
    assert await move_workers("gone") == MovedWorkers(found=False)
    assert [worker.name for worker in kept.there] == [worker_name(A.gateway, 2)]


@pytest.mark.asyncio
@pytest.mark.parametrize("silent", [1, 1_000_000])
async def test_a_head_that_is_busy_for_a_moment_leaves_no_worker_too_many(
    monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    """While a successor starts, the cluster does not tell how it is. One that stays silent is told to the operator, and
    the old worker keeps its rooms.
    """
    kept = books(monkeypatch, working(A, 1, "gone"))
    monkeypatch.setattr(module, "MOVE_S", 600.0 if silent == 1 else 0.05)
    monkeypatch.setattr(module, "_POLL_S", 0.0)
    left = silent

    async def states(gateway: str | None = None) -> list[WorkerState]:
        nonlocal left
        if kept.told and left:
            left -= 1
            raise ClusterError("The cluster does not tell where its room workers are.")
        return await kept.states(gateway)

    monkeypatch.setattr(module, "worker_states", states)
    started = f"start {worker_name(A.gateway, 2)}"
    if silent == 1:
        assert await move_workers("gone") == MovedWorkers()
        assert kept.told == [started, f"end {worker_name(A.gateway, 1)}"]
    else:
        with pytest.raises(ClusterError, match="does not tell"):
            await move_workers("gone")
        assert kept.told == [started]
