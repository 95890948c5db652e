"""Starts, moves and ends what is ours in a cluster: the keepers of shards and the recogniser service.

Everything here blocks, for commands that are connected to Ray (`ray_connection`).
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bot.cluster.ray_connection import NAMESPACE, ClusterError
from bot.cluster.recogniser_service import APP, application
from bot.cluster.shard_keeper import ShardKeeper
from bot.cluster.state import GroupState, group_states, keeper_names, leaving_node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.cluster.recogniser_service import ServiceSettings
    from bot.cluster.shard_groups import ShardGroup

PORT = 8571
# A bot waits for pauses in speech and stores what was said (`roomtone run` takes 55 s at most).
_HAND_OVER_S = 70.0
# A bot on another machine loads its models within this time.
_ELSEWHERE_S = 60.0
_POLL_S = 0.5


def keep_groups(groups: Sequence[ShardGroup], *, cpus: float) -> None:
    """Have one keeper for each group, and no others. Those that are there go on. `cpus`: what each reserves."""
    import ray

    wanted = {group.name: group for group in groups}
    for name in keeper_names():
        if name not in wanted:
            end_group(name)
    for name, group in wanted.items():
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
        keeper.remote(group)


def end_group(name: str) -> None:
    """Let a group's bot hand its rooms over, and end its keeper for good. Raises `ClusterError`."""
    _hand_over(name, restart=False)


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
    there = [group for group in group_states() if group.report is not None and group.report.node_id == node_id]
    _tell_ray(node_id, within_s=round(len(there) * (_HAND_OVER_S + _ELSEWHERE_S) + _HAND_OVER_S))
    for group in there:
        began_at = time.monotonic()
        _hand_over(group.name, restart=True)
        now = _elsewhere(group.name, node_id)
        say(f"{now.line()} (after {time.monotonic() - began_at:.0f} s)")
    say(f"Ray places nothing more on {ip}; its recognisers end when they have finished. There: `ray stop`.")


def end_everything(*, say: Callable[[str], None]) -> None:
    """End all keepers and the service. Raises `ClusterError`."""
    from ray import serve

    for name in keeper_names():
        say(f"Ending {name}: its rooms end at a pause in speech …")
        end_group(name)
    with suppress(Exception):  # Serve does not run
        serve.delete(APP)


def _hand_over(name: str, *, restart: bool) -> None:
    """Let a bot leave its rooms, and end its keeper. `restart`: Ray starts it again where it may."""
    import ray

    try:
        keeper = ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return
    try:
        # One that waits for a machine has no bot.
        if any(group.name == name and group.report is not None for group in group_states()):
            ray.get(keeper.hand_over.remote(), timeout=_HAND_OVER_S)
        ray.kill(keeper, no_restart=not restart)
    except ray.exceptions.RayError as error:
        raise ClusterError(f"{name} did not hand its rooms over. `roomtone cluster status` shows it.") from error


def _elsewhere(name: str, node_id: str) -> GroupState:
    """Return how a group is once its bot runs on another machine, or its time is over."""
    until = time.monotonic() + _ELSEWHERE_S
    state = GroupState(name, None)
    while time.monotonic() < until:
        state = next((group for group in group_states() if group.name == name), state)
        report = state.report
        if report is not None and report.node_id != node_id and report.process is not None:
            break
        time.sleep(_POLL_S)
    return state


def _tell_ray(node_id: str, *, within_s: int) -> None:
    """Tell Ray that a machine leaves. Raises `ClusterError` if it refuses."""
    import ray

    words = ("--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "roomtone cluster drain")
    told = subprocess.run(  # noqa: S603 - words of our own
        [
            *(sys.executable, "-m", "ray.scripts.scripts", "drain-node", *words, "--node-id", node_id),
            *("--address", ray.get_runtime_context().gcs_address, "--deadline-remaining-seconds", str(within_s)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        raise ClusterError(f"Ray does not let the machine leave: {(told.stderr or told.stdout).strip()[-200:]}")
