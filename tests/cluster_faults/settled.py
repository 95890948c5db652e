"""When a cluster is well: the bot is in every room, and loaded processes wait for the next rooms."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from rehearsal.errors import PersonError
from tests.cluster_faults.rooms import PATIENCE_S

if TYPE_CHECKING:
    from benchmarks.cluster.nodes import Nodes
    from tests.cluster_faults.faults import Cluster

# A process is loaded again ten seconds after it was taken; loading takes as long, and longer when several load. A node
# that may have no more of them has none that waits.
LOADED_WITHIN_S = 180.0


async def rooms_without_bot(cluster: Cluster) -> tuple[int, ...]:
    """Wait until processes wait for the next fault and the bot is in every room. Returns the rooms in which it does not
    come.
    """
    await processes_wait(cluster.nodes)
    until = time.monotonic() + PATIENCE_S
    absent: list[int] = []
    for room in cluster.rooms:
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await room.meet_bot()
        except (TimeoutError, PersonError):
            absent.append(room.number)
    return tuple(absent)


async def processes_wait(nodes: Nodes) -> None:
    """Wait until a loaded process waits for a room on every node that runs, and loading takes no processor any more."""
    until = time.monotonic() + LOADED_WITHIN_S
    while time.monotonic() < until:
        running = [node for node in nodes.all if node.process is not None]
        if all([await asyncio.to_thread(nodes.has_waiting, node) for node in running]):
            return
        await asyncio.sleep(1)
