"""Starts, moves and ends what is ours in a cluster, and tells who serves what there: the keepers of shards and the
recogniser service.

Everything here blocks, for commands that are connected to Ray (`ray_access`).
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bot.cluster.ray_access import NAMESPACE, ClusterError
from bot.cluster.recogniser_service import APP, DEPLOYMENT, ServiceSettings, application
from bot.cluster.shard_groups import IDENTIFY_S, ShardGroup, name_of_next, shards_of
from bot.cluster.shard_keeper import KeeperReport, ShardKeeper
from bot.shards import Shards, ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


PORT = 8571
# A bot waits for pauses in speech and stores what was said (`roomtone run` takes 55 s at most).
_HAND_OVER_S = 70.0
# A bot on another machine loads its models within this time.
_ELSEWHERE_S = 60.0
_POLL_S = 0.5


def keep_groups(groups: Sequence[ShardGroup], *, cpus: float) -> None:
    """Have one keeper for each group, and no others. Those that are there go on. `cpus`: what each reserves."""

    wanted = {group.shards: group for group in groups}
    kept = {name: shards_of(name) for name in keeper_names()}
    for name, shards in kept.items():
        if shards not in wanted:
            hand_over(name)
    for group in groups:
        if group.shards not in kept.values():
            _keep(group, group.name, cpus=cpus)


def _keep(group: ShardGroup, name: str, *, cpus: float, before: str = "") -> None:
    """Let Ray start a keeper of this name, unless there is one. `before`: the one that still keeps the group."""
    import ray

    keeper = ray.remote(ShardKeeper).options(
        name=name,
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        max_task_retries=0,
        num_cpus=cpus,
        scheduling_strategy="SPREAD",
    )
    keeper.remote(group, before=before)


def serve_recogniser(settings: ServiceSettings, http: dict[str, Any]) -> None:
    """Start the service, or change the one that is there, and wait until it hears. `http`: Ray Serve's options, which
    count when Serve is started. Raises `ClusterError`.
    """
    from ray import serve

    try:
        serve.start(proxy_location="HeadOnly", http_options=http)
        serve.run(application(settings), name=APP, route_prefix="/")
    except Exception as error:
        raise ClusterError(
            f"The recogniser service did not start. Has every machine the model (`roomtone models pull`) at "
            f"{settings.model_dir}, and as many CPUs or GPUs as asked for? `roomtone cluster status` shows what waits."
        ) from error


def serve_config(settings: ServiceSettings, http: dict[str, Any]) -> dict[str, object]:
    """Return the same for `serve deploy`, which needs Ray's dashboard."""
    app = {
        "name": APP,
        "route_prefix": "/",
        "import_path": "bot.cluster.recogniser_service:application",
        "args": settings.model_dump(),
    }
    return {"proxy_location": "HeadOnly", "http_options": http, "applications": [app]}


def drain(ip: str) -> Iterator[str]:
    """Move the groups and the recognisers of a machine elsewhere, one group after the other, and yield a sentence for
    each. Raises `ClusterError`.
    """
    node_id = leaving_node(ip)
    there = [
        (each.name, each.report)
        for each in group_states()
        if each.report is not None and each.report.node_id == node_id
    ]
    _notify_ray(node_id, within_s=round(len(there) * (_HAND_OVER_S + _ELSEWHERE_S) + _HAND_OVER_S))
    for name, report in there:
        following = name_of_next(name)
        _keep(report.group, following, cpus=report.cpus, before=name)
        _wait_until_loaded(following, machine=ip)
        began_at = time.monotonic()
        hand_over(name)
        yield f"{report.group.name}: moved from {ip}, handed over in {time.monotonic() - began_at:.0f} s"
    yield f"Ray places nothing more on {ip}; its recognisers end when they have finished. There: `ray stop`."


def end_everything() -> Iterator[str]:
    """End all keepers and the service, and yield a sentence before each. Raises `ClusterError`."""
    from ray import serve

    for name in keeper_names():
        yield f"Ending {name}: its rooms end at a pause in speech …"
        hand_over(name)
    with suppress(Exception):  # Serve does not run
        serve.delete(APP)


def hand_over(name: str) -> None:
    """Let a keeper's bot hand its rooms over, and end the keeper for good. Raises `ClusterError`."""
    import ray

    try:
        keeper = ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return
    try:
        # One that waits for a machine has no bot.
        if any(group.name == name and group.report is not None for group in group_states()):
            ray.get(keeper.hand_over.remote(), timeout=_HAND_OVER_S)
        ray.kill(keeper, no_restart=True)
    except ray.exceptions.RayError as error:
        raise ClusterError(f"{name} did not hand its rooms over. `roomtone cluster status` shows it.") from error


def _wait_until_loaded(name: str, *, machine: str) -> None:
    """Wait until the bot of a keeper has loaded all that it can. Raises `ClusterError`, and ends the keeper, if it has
    not in time.
    """
    import ray

    until = time.monotonic() + _ELSEWHERE_S
    while time.monotonic() < until:
        report = next((state.report for state in group_states() if state.name == name), None)
        if report is not None and report.process is not None and report.waits:
            return
        time.sleep(_POLL_S)
    # It would wait for a machine, or for the shards, without end.
    ray.kill(ray.get_actor(name, namespace=NAMESPACE), no_restart=True)
    raise ClusterError(
        f"No other machine is ready for the shards of {machine} within {_ELSEWHERE_S:.0f} s, so they are still served "
        "there. `roomtone cluster status` shows what is missing. Then drain again."
    )


def _notify_ray(node_id: str, *, within_s: int) -> None:
    """Tell Ray that a machine leaves. Raises `ClusterError` if it refuses."""
    import ray

    words = ("--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "roomtone cluster drain")
    drained = subprocess.run(  # noqa: S603 - words of our own
        [
            *(sys.executable, "-m", "ray.scripts.scripts", "drain-node", *words, "--node-id", node_id),
            *("--address", ray.get_runtime_context().gcs_address, "--deadline-remaining-seconds", str(within_s)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if drained.returncode:
        raise ClusterError(f"Ray does not let the machine leave: {(drained.stderr or drained.stdout).strip()[-200:]}")


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
