"""The cluster's room workers: how many there are, where they are, and how they leave a machine.

A worker is a named, detached actor (`worker_actor`) on a machine that `worker_placement` has chosen. The next worker is
always there before an old one hands its rooms over, if any machine has room for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bot.cluster.address import CALL_TIMEOUT_S, ClusterError, told
from bot.cluster.worker_names import names_to_add, numbered, serves
from bot.cluster.worker_placement import FreeMachine, machines_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.cluster.room_offer import RoomOffer
    from bot.cluster.worker_actor import WorkerReport

# Seconds in which a worker on another machine should have a loaded process, and in which one that leaves should answer.
MOVE_S: Final = 60.0
# One room takes a pause in speech, at most 20 s, and its end. A worker has a few.
HAND_OVER_S: Final = 600.0
# One after the other may start a process of Ray's on a busy machine.
WORKER_S: Final = 60.0
_POLL_S: Final = 1.0
# Ray's word for an actor that runs, and for one that is gone for good.
_ALIVE: Final = "ALIVE"
_DEAD: Final = "DEAD"
_SILENT: Final = "The cluster does not tell where its room workers are. Is its head running?"


@dataclass(frozen=True, slots=True)
class WorkerState:
    """One worker. `node_id`: Ray's, of its machine; empty while it waits for one. `report`: None: no answer."""

    name: str
    node_id: str = ""
    ip: str = ""
    report: WorkerReport | None = None

    @property
    def has_loaded(self) -> bool:
        """Return whether a room can come here now, or has come."""
        return self.report is not None and bool(self.report.offered.waiting or self.report.offered.busy)

    def line(self) -> str:
        """Return the state as a sentence for the operator."""
        if not self.node_id:
            return f"{self.name}: waits for a machine that has as much free as it reserves"
        if self.report is None:
            return f"{self.name}: on {self.ip}, starts"
        where = f"{self.name}: on {self.ip} ({self.report.host})"
        if self.report.process is None:
            return f"{where}, starts" + (f". It said: {self.report.problem}" if self.report.problem else "")
        offered = self.report.offered
        loading = f", {offered.loading} being loaded" if offered.loading else ""
        said = f". It said: {self.report.problem}" if self.report.problem and not self.has_loaded else ""
        return f"{where}, processes: {offered.busy} with rooms, {offered.waiting} waiting{loading}{said}"


def names_to_remove(there: Sequence[WorkerState], count: int) -> list[str]:
    """Return which workers are too many: first those that wait for a machine, then the last ones."""
    by_worth = sorted(there, key=lambda worker: (not worker.node_id, numbered(worker.name)))
    return [worker.name for worker in by_worth[count:]]


@dataclass(frozen=True, slots=True)
class WorkerChanges:
    """What to do for the workers that are wanted, in this order. `leave`: the names of those that end. `start`: of new
    ones. `replace`: of those that end once another one with the offer is there.
    """

    leave: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()


def changes_for(offer: RoomOffer, count: int, workers: Sequence[WorkerState]) -> WorkerChanges:
    """Return what to do so that `count` workers make this offer. `workers`: the cluster's. Those of other gateway
    processes stay as they are.
    """
    there = [worker for worker in workers if serves(worker.name, offer.gateway)]
    surplus = names_to_remove(there, count)
    kept = [worker for worker in there if worker.name not in surplus]
    # They do not tell their offer, and have no rooms.
    homeless = [worker.name for worker in kept if not worker.node_id]
    changed = [worker.name for worker in kept if worker.report is not None and worker.report.offer != offer]
    start = names_to_add({worker.name for worker in kept} - set(homeless), count, offer.gateway)
    return WorkerChanges(
        (*surplus, *sorted(homeless, key=numbered)), tuple(start), tuple(sorted(changed, key=numbered))
    )


async def set_workers(offer: RoomOffer, count: int) -> None:
    """Have `count` workers with this offer for its gateway process. Workers that are too many there, or have another
    offer, hand their rooms over.

    Returns when Ray knows of every worker, whether or not it has a machine yet. Raises `ClusterError`.
    """
    changes = changes_for(offer, count, await worker_states())
    for name in changes.leave:
        await _remove(name)
    await _add(changes.start, offer)
    for name in changes.replace:
        await _replace(name, offer)
    await _settled(offer.gateway)


async def worker_states(gateway: str | None = None) -> list[WorkerState]:
    """Return the cluster's workers, in order. `gateway`: only those that serve it. Raises `ClusterError`."""
    actors = await told(_actors, _SILENT)
    wanted = [actor for actor in actors if gateway is None or serves(actor[0], gateway)]
    return list(await asyncio.gather(*(_state(name, node_id, ip) for name, node_id, ip in wanted)))


@dataclass(frozen=True, slots=True)
class MovedWorkers:
    """How a machine's workers have left it. `found`: each that left found another machine. `silent`: the names of those
    that did not answer, and are still there with their rooms.
    """

    found: bool = True
    silent: tuple[str, ...] = ()


async def move_workers(node_id: str) -> MovedWorkers:
    """Move the workers of a machine, to which Ray gives nothing any more, to others: for each, another one is started,
    and once that has a loaded process the old one hands its rooms over. One that does not answer does not tell what the
    other one should offer, so it stays, and Ray starts it elsewhere once the machine is gone.

    Raises `ClusterError`.
    """
    found, silent = True, []
    for name in [worker.name for worker in await worker_states() if worker.node_id == node_id]:
        worker = await _seen(name, lambda seen: seen.report is not None or seen.node_id != node_id)
        if worker.node_id != node_id:
            continue
        if worker.report is None:
            silent.append(name)
            continue
        successor = await _replace(name, worker.report.offer)
        found = found and bool(successor.node_id)
    return MovedWorkers(found, tuple(silent))


async def _replace(name: str, offer: RoomOffer) -> WorkerState:
    """Start another worker with this offer, and let the one of this name hand its rooms over once that has a loaded
    process, or had time enough: where no machine has room for both, it starts when the old one has ended. Return how
    the new one was by then. Raises `ClusterError`.
    """
    there = {each.name for each in await worker_states(offer.gateway)}
    [successor] = names_to_add(there, len(there) + 1, offer.gateway)
    await _add([successor], offer)
    placed = await _seen(successor, lambda seen: seen.has_loaded)
    await _remove(name)
    return placed


async def _seen(name: str, holds: Callable[[WorkerState], bool]) -> WorkerState:
    """Wait for `MOVE_S` at most until a worker is as `holds` says, and return how it is then.

    A cluster that is silent for a moment is asked again: half of a move would leave one worker too many. Raises
    `ClusterError` if it still is in the end.
    """
    worker, silence = WorkerState(name), None
    with suppress(TimeoutError):
        async with asyncio.timeout(MOVE_S):
            while True:
                try:
                    worker = next((each for each in await worker_states() if each.name == name), WorkerState(name))
                    silence = None
                    if holds(worker):
                        break
                except ClusterError as error:
                    silence = error
                await asyncio.sleep(_POLL_S)
    if silence is not None:
        raise silence
    return worker


async def _settled(gateway: str) -> None:
    """Wait until each worker of the gateway process runs on a machine, or none has room for it: Ray is asked for a few
    seconds.
    """
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            while any(worker.report is None for worker in await worker_states(gateway)):  # noqa: ASYNC110 - as above
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        return


def _actors() -> list[tuple[str, str, str]]:
    """Return the name, the machine's id and its address of each worker; the latter are empty without a machine."""
    from ray._private.state import state

    found = []
    for actor in state.actor_table(None).values():
        name = actor["Name"]
        if any(numbered(name)) and actor["State"] != _DEAD:
            lives = actor["State"] == _ALIVE
            address = actor["Address"]
            found.append((name, address["NodeID"] if lives else "", address["IPAddress"] if lives else ""))
    return sorted(found, key=lambda each: numbered(each[0]))


async def _state(name: str, node_id: str, ip: str) -> WorkerState:
    if not node_id:
        return WorkerState(name)
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S / 2):
            report: WorkerReport = await _actor(name).report.remote()
    # Ray's errors for an actor that starts, is lost or has failed.
    except Exception:  # noqa: BLE001
        return WorkerState(name, node_id, ip)
    return WorkerState(name, node_id, ip, report)


def _actor(name: str) -> Any:
    import ray

    return ray.get_actor(name)


async def _add(names: Sequence[str], offer: RoomOffer) -> None:
    """Start workers of these names, each on the machine that suits it, or wherever Ray has room for it later."""
    machines = await told(_free_machines, _SILENT)
    for name, node_id in zip(names, machines_for(names, machines, offer), strict=True):
        await _create(name, offer, node_id)


def _free_machines() -> list[FreeMachine]:
    """Return the machines to which Ray gives something, and what they have free."""
    from ray._private.state import state

    leaving = state.get_draining_nodes()
    workers = Counter(node_id for _, node_id, _ in _actors())
    return [
        FreeMachine(
            node_id,
            has.get("CPU", 0.0),
            has.get("GPU", 0.0),
            has.get("memory", 0.0),
            workers[node_id],
            left_behind=frozenset(name for name in has if any(numbered(name))),
        )
        for node_id, has in state.available_resources_per_node().items()  # type: ignore[no-untyped-call]
        if node_id not in leaving
    ]


async def _create(name: str, offer: RoomOffer, node_id: str | None) -> None:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from bot.cluster.worker_actor import WorkerActor

    # Elsewhere only if the machine is lost, leaves, or what the worker reserves is no longer free there.
    here = node_id and NodeAffinitySchedulingStrategy(node_id, soft=True, _spill_on_unavailable=True)
    made = ray.remote(WorkerActor).options(
        name=name,
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        scheduling_strategy=here or "SPREAD",
        num_cpus=offer.cpus,
        num_gpus=offer.gpus,
        memory=offer.memory_bytes,
    )
    try:
        async with asyncio.timeout(WORKER_S):
            await asyncio.to_thread(made.remote, name, offer)
    except Exception as error:
        raise ClusterError(f"Ray did not take {name}, a room worker. Is its head running?") from error


async def _remove(name: str) -> None:
    """Let a worker hand its rooms over and end; return when Ray has forgotten it."""
    import ray

    try:
        actor = _actor(name)
    except ValueError:
        return
    try:
        async with asyncio.timeout(HAND_OVER_S):
            if any(worker.name == name and worker.node_id for worker in await worker_states()):
                # It ends itself with that, which is told as an error.
                with suppress(ray.exceptions.RayActorError):
                    await actor.leave.remote()
            await asyncio.to_thread(ray.kill, actor)
            while name in {actor[0] for actor in await asyncio.to_thread(_actors)}:  # noqa: ASYNC110 - as above
                await asyncio.sleep(_POLL_S)
    except Exception as error:
        raise ClusterError(
            f"{name} did not hand its rooms over. `roomtone cluster status` says how it is; try again."
        ) from error
