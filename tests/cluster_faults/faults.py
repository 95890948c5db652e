"""The faults of a cluster: how each is broken and mended (`rehearsal.fault_plan`), and whom it concerns."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from benchmarks.cluster.processes import PROC, family, signal_family
from benchmarks.cluster.ray_nodes import RayNode, RayNodes
from rehearsal.servers.transcription import TranscriptionBehaviour, TranscriptionMode
from tests.cluster_faults.rooms import SPEAKERS, WATCHED, RoomUnderTest
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


@dataclass(frozen=True, slots=True, eq=False)
class ClusterFault:
    """One fault. `rooms`: which it concerns. `broken`: it lasts while this is entered. Leaving it does what an operator
    or a service manager does; if people ask the bot something meanwhile (`RoomUnderTest.ask`), the trial waits for the
    answers. `is_orderly`: rooms hear until they are handed over.
    """

    rooms: Sequence[RoomUnderTest]
    broken: AbstractAsyncContextManager[None]
    lasts_s: float = 0.0
    is_orderly: bool = False


def no_fault(cluster: Cluster) -> ClusterFault:
    """Nothing breaks: what is lost all the same, the machine is too busy for."""
    return ClusterFault(cluster.rooms, nullcontext())


def killed_process(cluster: Cluster) -> ClusterFault:
    """SIGKILL to the bot of the first room, and to all that it has started. Its keeper starts it again."""
    killed = cluster.pid_of(cluster.rooms[0])
    assert killed is not None, "the bot is in its channel"

    @asynccontextmanager
    async def broken(pid: int) -> AsyncIterator[None]:
        signal_family(pid, signal.SIGKILL)
        yield

    return ClusterFault(cluster.rooms_of(family(killed)), broken(killed))


def lost_node(cluster: Cluster, *, back_s: float) -> ClusterFault:
    """SIGKILL to everything on a node, which comes back later."""
    node = cluster.other_node()

    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        await cluster.nodes.kill(node)
        yield
        await cluster.nodes.start(node)

    return ClusterFault(cluster.rooms_of(node.pids), broken(), back_s)


def frozen_node(cluster: Cluster) -> ClusterFault:
    """SIGSTOP to everything on a node, and SIGCONT when its rooms have gone on elsewhere: for a while two bots have
    each.

    Right before SIGCONT people ask the bot something: it has to answer once, while the process that hung finds out that
    the room is not its own any more. Ray ends what was given up; the node joins again.
    """
    node = cluster.other_node()
    rooms = cluster.rooms_of(node.pids)

    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        assert node.process is not None, "it runs"
        signal_family(node.process.pid, signal.SIGSTOP)
        frozen = node.pids
        try:
            yield
            await asyncio.gather(*(room.ask() for room in rooms[:WATCHED]))
        finally:
            for pid in frozen:
                signal_family(pid, signal.SIGCONT)
        await asyncio.gather(*(room.answered() for room in rooms[:WATCHED]))
        await cluster.nodes.kill(node)
        await cluster.nodes.start(node)

    return ClusterFault(rooms, broken(), FROZEN_S)


def drained_node(cluster: Cluster) -> ClusterFault:
    """`roomtone cluster drain`, as before a restart of a machine, which comes back."""
    node = cluster.other_node()

    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        await cluster.nodes.roomtone("cluster", "drain", node.ip)
        yield
        await cluster.nodes.kill(node)
        await cluster.nodes.start(node)

    return ClusterFault(cluster.rooms_of(node.pids), broken(), is_orderly=True)


def recogniser_away(cluster: Cluster) -> ClusterFault:
    """The endpoint of the bots fails for a while: they hear by themselves, and say so.

    Meanwhile somebody speaks in the watched rooms alone: two cores recognise no more than that by themselves.
    """
    watched = cluster.rooms[:WATCHED]

    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        for room in cluster.rooms[WATCHED:]:
            room.quiet.set()
        cluster.recogniser.mode = TranscriptionMode.BROKEN
        yield
        # A bot in whose rooms nobody speaks asks no recogniser and knows nothing.
        cluster.told = [await _says(room, "The speech recogniser") for room in watched]
        cluster.recogniser.mode = TranscriptionMode.ANSWER
        await asyncio.sleep(RECOGNISER_BACK_S)

    return ClusterFault(watched, broken(), RECOGNISER_AWAY_S)


def stopped_database(cluster: Cluster, *, away_s: float) -> ClusterFault:
    """PostgreSQL is away, with every connection to it, and comes back."""

    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        await asyncio.to_thread(cluster.database.stop)
        yield
        await asyncio.to_thread(cluster.database.start)

    return ClusterFault(cluster.rooms, broken(), away_s)


# Of a cluster, at a pace, with a database that is away for so long.
FAULTS: dict[str, Callable[[Cluster, Pace, float], ClusterFault]] = {
    "calm": lambda cluster, _, __: no_fault(cluster),
    "process": lambda cluster, _, __: killed_process(cluster),
    "node": lambda cluster, pace, _: lost_node(cluster, back_s=pace.back_s),
    "frozen": lambda cluster, _, __: frozen_node(cluster),
    "drained": lambda cluster, _, __: drained_node(cluster),
    "recogniser": lambda cluster, _, __: recogniser_away(cluster),
    "database": lambda cluster, _, away_s: stopped_database(cluster, away_s=away_s),
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
