"""Takes a machine out of the cluster while people speak.

Ray places nothing more on a machine that is drained. Ray Serve starts each of its recognisers anew elsewhere, and ends
the old one when that has finished what it has. Ray does not take a drained machine back: it leaves and joins again.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from bot.cluster.address import CALL_TIMEOUT_S, ClusterError, told
from bot.cluster.deployment import DRAIN_S
from bot.cluster.state import cluster_state, recognisers_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.cluster.state import NodeState

# Seconds in which the other machines should have started as many recognisers as leave. If they have no room for them,
# the old ones end nevertheless: whoever drains a machine wants to switch it off.
MOVE_S = 60.0
# Ray's reason for a machine that goes whatever still runs there (`DrainNodeReason` in autoscaler.proto).
_PREEMPTION = 2
_REASON = "roomtone cluster drain"
_POLL_S = 0.5
_SILENT = "The cluster does not say whether the machine may leave. Is its head running?"


def leaving_node(nodes: Sequence[NodeState], ip: str) -> NodeState:
    """Return the machine to drain. Raises `ClusterError` if it is none that can leave."""
    here = [node for node in nodes if node.ip == ip and node.alive]
    if not here:
        others = ", ".join(node.ip for node in nodes if node.alive and not node.is_head)
        raise ClusterError(
            f"The cluster has no machine {ip}. "
            + (f"It could leave: {others}." if others else "It has no other machine than the first.")
        )
    if here[0].is_head:
        raise ClusterError(
            f"{ip} is the cluster's first machine, and the cluster ends with it: `roomtone cluster down` there. "
            "Bots hear by themselves afterwards."
        )
    return here[0]


async def drain(ip: str) -> bool:
    """Move the recognisers away from a machine. Return whether they are gone, once they had time enough.

    Raises `ClusterError` if it is none that can leave, or Ray refuses.
    """
    node = leaving_node((await cluster_state()).nodes, ip)
    deadline_s = MOVE_S + DRAIN_S
    refusal = await told(partial(_ask_ray, node.id, deadline_s), _SILENT)
    if refusal is not None:
        raise ClusterError(f"Ray does not let {ip} leave: {refusal}")
    return await _recognisers_left(node.id, deadline_s + CALL_TIMEOUT_S)


async def _recognisers_left(node_id: str, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            while not await _has_no_recogniser(node_id):  # noqa: ASYNC110 - Ray Serve tells nobody
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        return False
    return True


async def _has_no_recogniser(node_id: str) -> bool:
    """Return whether the machine has none for certain. A head that is busy for a moment is asked again."""
    try:
        return not await recognisers_on(node_id)
    except ClusterError:
        return False


def _ask_ray(node_id: str, deadline_s: float) -> str | None:
    """Tell Ray that the machine leaves; return its sentence if it refuses."""
    import ray
    from ray._raylet import GcsClient  # type: ignore[attr-defined]

    gcs = GcsClient(address=ray.get_runtime_context().gcs_address)
    by_ms = int((time.time() + deadline_s) * 1000)
    accepted, why = gcs.drain_node(node_id, _PREEMPTION, _REASON, by_ms)
    return None if accepted else str(why)
