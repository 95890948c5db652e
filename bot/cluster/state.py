"""Who serves what in a cluster: its machines, the groups of shards and the recognisers, as sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bot.cluster.ray_access import ClusterError
from bot.cluster.recogniser_service import APP, DEPLOYMENT
from bot.cluster.shard_groups import IDENTIFY_S, shards_of
from bot.shards import Shards, ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bot.cluster.shard_keeper import KeeperReport

_ANSWER_S = 5.0
# What the first machine has, and no other.
_HEAD = "node:__internal_head__"


@dataclass(frozen=True, slots=True)
class GroupState:
    """One group of shards. `report`: None: it waits for a machine, or does not answer."""

    name: str
    report: KeeperReport | None

    def line(self) -> str:
        """Return the state as a sentence for the operator."""
        if self.report is None:
            return f"{self.name}: waits for a machine with free CPUs, or does not answer"
        where = f"{self.name}: on {self.report.ip} ({self.report.host})"
        if self.report.process is None:
            return f"{where}, not running. It said: {self.report.said}"
        again = f", started {self.report.starts} times" if self.report.starts > 1 else ""
        return f"{where}, process {self.report.process}{again}"


def keeper_names() -> list[str]:
    """Return the names of all keepers that Ray has, in order."""
    import ray

    return sorted(name for name in ray.util.list_named_actors() if shards_of(name) is not None)


def group_states() -> list[GroupState]:
    """Return how every group is."""
    import ray

    asked: dict[str, Any] = {name: ray.get_actor(name).report.remote() for name in keeper_names()}
    ready, _ = ray.wait(list(asked.values()), num_returns=len(asked), timeout=_ANSWER_S) if asked else ([], [])
    return [GroupState(name, _report(answer) if answer in ready else None) for name, answer in asked.items()]


def _report(answer: Any) -> KeeperReport | None:
    import ray

    try:
        report: KeeperReport = ray.get(answer)
    except ray.exceptions.RayError:
        return None
    return report


def cluster_lines(groups: Iterable[GroupState]) -> list[str]:
    """Return machines, groups and recognisers as sentences."""
    nodes = sorted(_nodes(), key=lambda node: (_HEAD not in node["Resources"], node["NodeManagerAddress"]))
    return [*map(_machine_line, nodes), *(group.line() for group in groups), *_recogniser_lines()]


def _machine_line(node: dict[str, Any]) -> str:
    has = node["Resources"]
    what = f"{has.get('CPU', 0):g} CPUs, {has.get('GPU', 0):g} GPUs" if node["Alive"] else "gone"
    return f"{node['NodeManagerAddress']}: {what}"


def _recogniser_lines() -> list[str]:
    from ray import serve

    app = serve.status().applications.get(APP)
    if app is None:
        return ["No recogniser service."]
    replicas = app.deployments[DEPLOYMENT].replica_states if DEPLOYMENT in app.deployments else {}
    counts = ", ".join(f"{count} {state.value.lower()}" for state, count in replicas.items()) or "none"
    why = f" {app.message}" if app.message else ""
    return [f"Recognisers: {counts} ({app.status.value.lower()}).{why}"]


def unserved_lines(served: Sequence[Shards]) -> list[str]:
    """Return which shards nobody serves. `served`: those that processes hold in the database, for each total."""
    lines = [] if served else ["No process serves any shard."]
    for shards in served:
        missing = [shard for shard in range(shards.total) if shard not in shards.ids]
        if missing:
            lines.append(
                f"Nobody serves {ranges(missing)} of {shards.total} shards. Discord lets one shard in every "
                f"{IDENTIFY_S} s, so these take {IDENTIFY_S * len(missing)} s once their processes run."
            )
    return lines


def leaving_node(ip: str) -> str:
    """Return the id of the machine to drain. Raises `ClusterError` if it is none that can leave."""
    alive = [node for node in _nodes() if node["Alive"]]
    here = [node for node in alive if node["NodeManagerAddress"] == ip]
    if not here:
        raise ClusterError(f"The cluster has no machine {ip}. `roomtone cluster status` shows them.")
    if _HEAD in here[0]["Resources"]:
        raise ClusterError(f"{ip} is the cluster's first machine. The cluster ends with it: `roomtone cluster down`.")
    node_id: str = here[0]["NodeID"]
    return node_id


def _nodes() -> list[dict[str, Any]]:
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return nodes
