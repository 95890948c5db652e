"""Starts, moves and ends what is ours in a cluster: the keepers of shards and the recogniser service.

Everything here blocks, for commands that are connected to Ray (`ray_access`).
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bot.cluster.ray_access import NAMESPACE, ClusterError
from bot.cluster.recogniser_service import APP, ServiceSettings, application
from bot.cluster.shard_groups import ShardGroup, name_of_next, shards_of
from bot.cluster.shard_keeper import ShardKeeper
from bot.cluster.state import group_states, keeper_names, leaving_node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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


def drain(ip: str, *, say: Callable[[str], None]) -> None:
    """Move the groups and the recognisers of a machine elsewhere, one group after the other. Raises `ClusterError`."""
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
        say(f"{report.group.name}: moved from {ip}, handed over in {time.monotonic() - began_at:.0f} s")
    say(f"Ray places nothing more on {ip}; its recognisers end when they have finished. There: `ray stop`.")


def end_everything(*, say: Callable[[str], None]) -> None:
    """End all keepers and the service. Raises `ClusterError`."""
    from ray import serve

    for name in keeper_names():
        say(f"Ending {name}: its rooms end at a pause in speech …")
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
