"""The faults: what is broken and mended again and whom it concerns."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from benchmarks.cluster.processes import owner_of_udp_port, signal_family
from tests.cluster_faults.rooms import WATCHED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.cluster.nodes import Node, Nodes
    from benchmarks.report import Json
    from tests.cluster_faults.pool import Pool
    from tests.cluster_faults.rooms import RoomUnderTest
    from tests.postgres import PostgresServer

# A service manager starts the gateway process again after this.
RESTARTED_AFTER_S = 1.0
# Twice as long as it takes until a node that hangs is given up.
FROZEN_S = 15.0


class NothingToBreakError(Exception):
    """No node but the first has a room, so the loss of one would concern nobody."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long everything takes. `lead_s`, `follow_s`: people speak before a fault, and after it is over. `back_s`: a
    node that was killed is down.
    """

    lead_s: float
    follow_s: float
    back_s: float


NORMAL = Pace(lead_s=8.0, follow_s=20.0, back_s=15.0)
# For a test of the whole: a few sentences before and after.
QUICK = Pace(lead_s=5.0, follow_s=8.0, back_s=8.0)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What can be broken. `pool`: the recognisers that rooms use besides their own."""

    nodes: Nodes
    rooms: Sequence[RoomUnderTest]
    database: PostgresServer
    pool: Pool | None = None

    def pid_of(self, room: RoomUnderTest) -> int | None:
        """Return the process that has a room's voice connection."""
        port = room.bot_port
        if port is None:
            return None
        return owner_of_udp_port(port, [*(pid for node in self.nodes.all for pid in node.pids), *self.nodes.orphans])

    def rooms_of(self, pids: Sequence[int]) -> list[RoomUnderTest]:
        """Return the rooms that run in one of these processes."""
        return [room for room in self.rooms if self.pid_of(room) in pids]

    def other_node(self) -> Node:
        """Return the node with the most rooms that is not the gateway process's. Raises `NothingToBreakError`."""
        node = max(self.nodes.all[1:], key=lambda node: len(self.rooms_of(node.pids)))
        if not self.rooms_of(node.pids):
            raise NothingToBreakError
        return node


class Fault(Protocol):
    """One fault."""

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        """Choose what breaks next, and return the rooms that it concerns."""

    async def strike(self, cluster: Cluster) -> None:
        """Break it. Returns at once."""

    async def mend(self, cluster: Cluster) -> None:
        """Let time pass, and do what an operator or a service manager does. If people ask the bot something meanwhile
        (`RoomUnderTest.ask`), the trial waits for the answers.
        """


@runtime_checkable
class TellingFault(Fault, Protocol):
    """A fault that tells more than what became of speech."""

    def facts(self) -> Mapping[str, Json]:
        """Return what was seen of it, once it is over."""


class NoFault:
    """Nothing breaks: what is lost all the same, the machine is too busy for."""

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        return list(cluster.rooms)

    async def strike(self, cluster: Cluster) -> None:
        """Do nothing."""

    async def mend(self, cluster: Cluster) -> None:
        """Do nothing."""


class KilledRoom:
    """SIGKILL to the process of one room after the other, wherever they run."""

    def __init__(self) -> None:
        self._struck = 0
        self._pid = 0

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        room = cluster.rooms[self._struck % len(cluster.rooms)]
        self._struck += 1
        pid = cluster.pid_of(room)
        assert pid is not None, "the bot is in its channel"
        self._pid = pid
        return cluster.rooms_of([pid])

    async def strike(self, cluster: Cluster) -> None:
        del cluster
        signal_family(self._pid, signal.SIGKILL)

    async def mend(self, cluster: Cluster) -> None:
        """Do nothing: the cluster itself does."""


class KilledGateway:
    """SIGKILL to the gateway process alone, which is started again."""

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        return list(cluster.rooms)

    async def strike(self, cluster: Cluster) -> None:
        await cluster.nodes.kill_gateway()

    async def mend(self, cluster: Cluster) -> None:
        await asyncio.sleep(RESTARTED_AFTER_S)
        await cluster.nodes.start(cluster.nodes.first)


class KilledNode:
    """SIGKILL to everything on a node, which comes back later."""

    def __init__(self, back_s: float) -> None:
        self._back_s = back_s
        self._node: Node | None = None

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        self._node = cluster.other_node()
        return cluster.rooms_of(self._node.pids)

    async def strike(self, cluster: Cluster) -> None:
        assert self._node is not None, "chosen"
        await cluster.nodes.kill_node(self._node)

    async def mend(self, cluster: Cluster) -> None:
        assert self._node is not None, "chosen"
        await asyncio.sleep(self._back_s)
        await cluster.nodes.start(self._node)


class FrozenNode:
    """SIGSTOP to everything on a node, and SIGCONT when its rooms have gone on elsewhere: for a while two have each.

    Right before SIGCONT people ask the bot something: it has to answer once, while the process that hung finds out that
    the room is not its own any more.
    """

    def __init__(self) -> None:
        self._pid = 0
        self._rooms: Sequence[RoomUnderTest] = ()

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        node = cluster.other_node()
        assert node.process is not None, "it runs"
        self._pid = node.process.pid
        rooms = cluster.rooms_of(node.pids)
        self._rooms = rooms[:WATCHED]
        return rooms

    async def strike(self, cluster: Cluster) -> None:
        del cluster
        signal_family(self._pid, signal.SIGSTOP)

    async def mend(self, cluster: Cluster) -> None:
        del cluster
        try:
            await asyncio.sleep(FROZEN_S)
            await asyncio.gather(*(room.ask() for room in self._rooms))
        finally:
            signal_family(self._pid, signal.SIGCONT)


class DrainedNode:
    """SIGTERM to a node, as before a restart of its machine: it hands its rooms over and ends, and comes back."""

    def __init__(self) -> None:
        self._node: Node | None = None

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        self._node = cluster.other_node()
        return cluster.rooms_of(self._node.pids)

    async def strike(self, cluster: Cluster) -> None:
        """Do nothing: it takes its time (`mend`)."""

    async def mend(self, cluster: Cluster) -> None:
        assert self._node is not None, "chosen"
        await cluster.nodes.drain(self._node)
        await cluster.nodes.start(self._node)


class StoppedDatabase:
    """PostgreSQL is away, with every connection to it, and comes back."""

    def __init__(self, away_s: float) -> None:
        self._away_s = away_s

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        return list(cluster.rooms)

    async def strike(self, cluster: Cluster) -> None:
        await asyncio.to_thread(cluster.database.stop)

    async def mend(self, cluster: Cluster) -> None:
        await asyncio.sleep(self._away_s)
        await asyncio.to_thread(cluster.database.start)
