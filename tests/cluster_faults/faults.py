"""The faults: what is broken and mended again, and whom it concerns."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from benchmarks.cluster.processes import PROC, family, signal_family
from rehearsal.servers.transcription import TranscriptionBehaviour, TranscriptionMode
from tests.cluster_faults.rooms import SPEAKERS, WATCHED, RoomUnderTest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.cluster.ray_nodes import RayNode, RayNodes
    from tests.postgres import PostgresServer

# Longer than it takes until a node that hangs is given up and its shards are heard elsewhere.
FROZEN_S = 35.0
RECOGNISER_AWAY_S = 20.0
# A bot tries a recogniser again a minute after it was found away (`voice.circuit_breaker`), with the next sentence.
RECOGNISER_BACK_S = 70.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long everything takes. `lead_s`, `follow_s`: people speak before a fault, and after it is over. `back_s`: a
    node that was killed is down.
    """

    lead_s: float
    follow_s: float
    back_s: float


NORMAL = Pace(lead_s=8.0, follow_s=20.0, back_s=35.0)
# For a test of the whole: a few sentences before and after.
QUICK = Pace(lead_s=5.0, follow_s=8.0, back_s=8.0)


@dataclass(slots=True)
class Cluster:
    """What can be broken. `recogniser`: the endpoint that the bots ask first. `told`: what people were told of it."""

    nodes: RayNodes
    rooms: Sequence[RoomUnderTest]
    database: PostgresServer
    recogniser: TranscriptionBehaviour
    told: list[bool] = field(default_factory=list)

    def pid_of(self, room: RoomUnderTest, among: Sequence[int] | None = None) -> int | None:
        """Return the process that has a room's voice connection."""
        port = room.bot_port
        if port is None:
            return None
        pids = [pid for node in self.nodes.all for pid in node.pids] if among is None else among
        return owner_of_udp_port(port, pids)

    def rooms_of(self, pids: Sequence[int]) -> list[RoomUnderTest]:
        """Return the rooms whose voice connection is one of these processes'."""
        return [room for room in self.rooms if self.pid_of(room, pids) is not None]

    def other_node(self) -> RayNode:
        """Return the node with the most rooms that is not the head."""
        node = max(self.nodes.all[1:], key=lambda node: len(self.rooms_of(node.pids)))
        assert self.rooms_of(node.pids), "Ray has spread the bots"
        return node


class ClusterFault(Protocol):
    """One fault. `is_orderly`: rooms hear until they are handed over."""

    is_orderly: bool

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        """Choose what breaks next, and return the rooms that it concerns."""

    async def strike(self, cluster: Cluster) -> None:
        """Break it. Returns at once."""

    async def mend(self, cluster: Cluster) -> None:
        """Let time pass, and do what an operator or a service manager does. If people ask the bot something meanwhile
        (`RoomUnderTest.ask`), the trial waits for the answers.
        """


class NoFault:
    """Nothing breaks: what is lost all the same, the machine is too busy for."""

    is_orderly = False

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        return list(cluster.rooms)

    async def strike(self, cluster: Cluster) -> None:
        """Do nothing."""

    async def mend(self, cluster: Cluster) -> None:
        """Do nothing."""


class KilledProcess:
    """SIGKILL to the bot of one room after the other, and to all that it has started."""

    is_orderly = False

    def __init__(self) -> None:
        self._struck = 0
        self._pid = 0

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        room = cluster.rooms[self._struck % len(cluster.rooms)]
        self._struck += 1
        pid = cluster.pid_of(room)
        assert pid is not None, "the bot is in its channel"
        self._pid = pid
        return cluster.rooms_of(family(pid))

    async def strike(self, cluster: Cluster) -> None:
        del cluster
        signal_family(self._pid, signal.SIGKILL)

    async def mend(self, cluster: Cluster) -> None:
        """Do nothing: its keeper starts it again."""


class _OnANode:
    """A fault of the node with the most rooms, which is not the head."""

    is_orderly = False

    def __init__(self) -> None:
        self.node: RayNode | None = None
        self.rooms: list[RoomUnderTest] = []

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        self.node = cluster.other_node()
        self.rooms = cluster.rooms_of(self.node.pids)
        return self.rooms

    def chosen(self) -> RayNode:
        """Return the node."""
        assert self.node is not None, "chosen"
        return self.node


class LostNode(_OnANode):
    """SIGKILL to everything on a node, which comes back later."""

    def __init__(self, back_s: float) -> None:
        super().__init__()
        self._back_s = back_s

    async def strike(self, cluster: Cluster) -> None:
        await cluster.nodes.kill(self.chosen())

    async def mend(self, cluster: Cluster) -> None:
        await asyncio.sleep(self._back_s)
        await cluster.nodes.start(self.chosen())


class FrozenNode(_OnANode):
    """SIGSTOP to everything on a node, and SIGCONT when its rooms have gone on elsewhere: for a while two bots have
    each.

    Right before SIGCONT people ask the bot something: it has to answer once, while the process that hung finds out that
    the room is not its own any more. Ray ends what was given up; the node joins again.
    """

    async def strike(self, cluster: Cluster) -> None:
        del cluster
        process = self.chosen().process
        assert process is not None, "it runs"
        signal_family(process.pid, signal.SIGSTOP)

    async def mend(self, cluster: Cluster) -> None:
        node = self.chosen()
        process = node.process
        assert process is not None, "it runs"
        frozen = node.pids
        try:
            await asyncio.sleep(FROZEN_S)
            await asyncio.gather(*(room.ask() for room in self.rooms[:WATCHED]))
        finally:
            for pid in frozen:
                signal_family(pid, signal.SIGCONT)
        await asyncio.gather(*(room.answered() for room in self.rooms[:WATCHED]))
        await cluster.nodes.kill(node)
        await cluster.nodes.start(node)


class DrainedNode(_OnANode):
    """`roomtone cluster drain`, as before a restart of a machine, which comes back."""

    is_orderly = True

    async def strike(self, cluster: Cluster) -> None:
        """Do nothing: it takes its time (`mend`)."""

    async def mend(self, cluster: Cluster) -> None:
        node = self.chosen()
        await cluster.nodes.roomtone("cluster", "drain", node.ip)
        await cluster.nodes.kill(node)
        await cluster.nodes.start(node)


class RecogniserAway:
    """The endpoint of the bots fails for a while: they hear by themselves, and say so.

    Meanwhile somebody speaks in the watched rooms alone: two cores recognise no more than that by themselves.
    """

    is_orderly = False

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        return list(cluster.rooms[:WATCHED])

    async def strike(self, cluster: Cluster) -> None:
        for room in cluster.rooms[WATCHED:]:
            room.quiet.set()
        cluster.recogniser.mode = TranscriptionMode.BROKEN

    async def mend(self, cluster: Cluster) -> None:
        await asyncio.sleep(RECOGNISER_AWAY_S)
        # A bot in whose rooms nobody speaks asks no recogniser and knows nothing.
        cluster.told = [await _says(room, "The speech recogniser") for room in cluster.rooms[:WATCHED]]
        cluster.recogniser.mode = TranscriptionMode.ANSWER
        await asyncio.sleep(RECOGNISER_BACK_S)


class StoppedDatabase:
    """PostgreSQL is away, with every connection to it, and comes back."""

    is_orderly = False

    def __init__(self, away_s: float) -> None:
        self._away_s = away_s

    def choose(self, cluster: Cluster) -> list[RoomUnderTest]:
        return list(cluster.rooms)

    async def strike(self, cluster: Cluster) -> None:
        await asyncio.to_thread(cluster.database.stop)

    async def mend(self, cluster: Cluster) -> None:
        await asyncio.sleep(self._away_s)
        await asyncio.to_thread(cluster.database.start)


FAULTS: dict[str, Callable[[Pace, float], ClusterFault]] = {
    "calm": lambda _, __: NoFault(),
    "process": lambda _, __: KilledProcess(),
    "node": lambda pace, _: LostNode(pace.back_s),
    "frozen": lambda _, __: FrozenNode(),
    "drained": lambda _, __: DrainedNode(),
    "recogniser": lambda _, __: RecogniserAway(),
    "database": lambda _, away_s: StoppedDatabase(away_s),
}


def owner_of_udp_port(port: int, among: Sequence[int]) -> int | None:
    """Return which of these processes has the UDP socket of a port of this machine."""
    lines = [line.split() for line in (PROC / "net" / "udp").read_text("ascii").splitlines()[1:]]
    sockets = {f"socket:[{fields[9]}]" for fields in lines if fields[1].endswith(f":{port:04X}")}
    return next((pid for pid in among if sockets.intersection(_open_files(pid))), None)


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for each in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                yield str(each.readlink())


async def _says(room: RoomUnderTest, words: str) -> bool:
    """Return whether `/status` of a room says this."""
    return words in (await room.discord.invoke(SPEAKERS[0][0], "status")).content
