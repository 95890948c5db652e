"""The cluster's machines and its pool, as Ray tells them, and as sentences for the operator."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from bot.cluster.address import told
from bot.cluster.resources import cpus_in_words, gpus_in_words

APP = "roomtone-recognisers"
DEPLOYMENT = "recogniser"
# Of an application and of a replica.
_RUNNING = "RUNNING"
# What the first machine has, and no other.
_HEAD = "node:__internal_head__"
_SILENT = "The cluster does not tell its state. Is its head running?"
# Why a machine is gone (`NodeDeathInfo.Reason` in gcs.proto): it ended in order, or it was drained.
_LEFT = frozenset({1, 3, 4})
# Of what takes speech on a machine (Ray Serve's proxy); one that drains still answers.
_TAKE_SPEECH = frozenset({"HEALTHY", "DRAINING"})


@dataclass(frozen=True, slots=True)
class PoolState:
    """The pool as Ray Serve tells it. `status`: RUNNING, DEPLOYING, UNHEALTHY … `problem`: empty if there is none."""

    status: str
    running: int
    starting: int
    problem: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """One machine of the cluster, and what Ray may give away there. `id`: Ray's. `leaves`: it was drained, or ended in
    order; with `alive` it still works on what it has. `recognisers`: how many hear there.
    """

    ip: str
    alive: bool
    cpus: float
    gpus: float
    id: str = ""
    is_head: bool = False
    leaves: bool = False
    recognisers: int = 0

    def line(self) -> str:
        """Return the state as a sentence for the operator."""
        match self.alive, self.leaves:
            case True, False:
                has = f"{cpus_in_words(self.cpus)}, {gpus_in_words(self.gpus)}"
                return f"{self.ip}: {has}, recognisers that hear: {self.recognisers}"
            case True, True:
                return f"{self.ip}: drained, so it gets no speech. `roomtone cluster down` there ends it."
            case False, True:
                return f"{self.ip}: has left"
            case _:
                return f"{self.ip}: lost"


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster's machines, and its pool if it has one."""

    nodes: tuple[NodeState, ...]
    pool: PoolState | None

    def lines(self) -> list[str]:
        """Return the state as sentences for the operator."""
        return [*(node.line() for node in self.nodes), *self._pool_lines()]

    def _pool_lines(self) -> list[str]:
        if self.pool is None:
            return ["There are no recognisers. `roomtone cluster up` on the first machine starts them."]
        starting = f", and {self.pool.starting} more start" if self.pool.starting else ""
        told = f"Recognisers that hear: {self.pool.running}{starting} ({self.pool.status.lower()})."
        return [told, *([self.pool.problem] if self.pool.problem else [])]


async def cluster_state() -> ClusterState:
    """Return the cluster's state. Raises `ClusterError`."""
    nodes, drained = await told(_nodes, _SILENT)
    pool = await pool_state()
    hear: Counter[str] = Counter() if pool is None else hearing_by_machine(await told(_serve_details, _SILENT))
    found = [node_state(node, drained=node["NodeID"] in drained) for node in nodes]
    machines = sorted(found, key=lambda node: (not node.is_head, node.ip))
    here = tuple(replace(node, recognisers=hear[node.id]) for node in machines)
    return ClusterState(here, pool)


def _nodes() -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the machines as Ray tells them, and the ids of those that leave."""
    import ray
    from ray._private.state import state

    return ray.nodes(), state.get_draining_nodes()  # type: ignore[no-untyped-call]


def node_state(node: dict[str, Any], *, drained: bool) -> NodeState:
    """Return a machine's state. `node`: what `ray.nodes` tells of it. `drained`: Ray was told that it leaves."""
    has = node.get("Resources", {})
    alive = bool(node["Alive"])
    return NodeState(
        node["NodeManagerAddress"],
        alive,
        has.get("CPU", 0.0),
        has.get("GPU", 0.0),
        id=node["NodeID"],
        is_head=_HEAD in has,
        leaves=drained if alive else node.get("DeathReason") in _LEFT,
    )


async def pool_state() -> PoolState | None:
    """Return the pool's state; None if the cluster has no pool. Raises `ClusterError`."""
    app = await _application(APP)
    if app is None:
        return None
    status = _status_of(app)
    deployment = app.deployments.get(DEPLOYMENT)
    replicas = {} if deployment is None else {str(state): count for state, count in deployment.replica_states.items()}
    return PoolState(
        status=status,
        running=replicas.get(_RUNNING, 0),
        starting=replicas.get("STARTING", 0),
        problem="" if status == _RUNNING else app.message,
    )


async def app_status(name: str) -> str | None:
    """Return the status of an application of Ray Serve; None if there is none of this name. Raises `ClusterError`."""
    app = await _application(name)
    return None if app is None else _status_of(app)


async def _application(name: str) -> Any | None:
    from ray import serve

    return (await told(serve.status, _SILENT)).applications.get(name)


def _status_of(app: Any) -> str:
    return str(getattr(app.status, "value", app.status))


async def recognisers_on(node_id: str) -> int:
    """Return how many recognisers a machine has, in whatever state. Raises `ClusterError`."""
    replicas = _replicas(await told(_serve_details, _SILENT))
    return sum(replica.get("node_id") == node_id for replica in replicas)


async def machines_that_refuse() -> list[str]:
    """Return the addresses of the machines that do not take speech from their bots, and do not leave.

    Raises `ClusterError`.
    """
    details = await told(_serve_details, _SILENT)
    take = {node_id for node_id, proxy in details["proxies"].items() if proxy["status"] in _TAKE_SPEECH}
    nodes = await told(_staying, _SILENT)
    return sorted(node["NodeManagerAddress"] for node in nodes if node["NodeID"] not in take)


def machines_with_work() -> int:
    """Return how many machines Ray may give something: those that run and do not leave."""
    return len(_staying())


def _staying() -> list[dict[str, Any]]:
    nodes, drained = _nodes()
    return [node for node in nodes if node["Alive"] and node["NodeID"] not in drained]


def hearing_by_machine(details: dict[str, Any]) -> Counter[str]:
    """Return how many recognisers hear on each machine, by Ray's id. `details`: what Ray Serve tells of itself."""
    return Counter(str(each.get("node_id")) for each in _replicas(details) if each.get("state") == _RUNNING)


def _replicas(details: dict[str, Any]) -> list[dict[str, Any]]:
    deployments = details["applications"].get(APP, {}).get("deployments", {})
    replicas: list[dict[str, Any]] = deployments.get(DEPLOYMENT, {}).get("replicas", [])
    return replicas


def _serve_details() -> dict[str, Any]:
    from ray.serve.context import _get_global_client

    client: Any = _get_global_client()
    details: dict[str, Any] = client.get_serve_details()
    return details
