"""The faults: what is broken and mended again, and whom it concerns.

Each fault is a generator with three steps: it yields the rooms that it concerns, breaks something and yields again, and
mends it with what an operator or a service manager does. Whoever drives it lets people speak meanwhile. If people ask
the bot something while it is mended (`RoomUnderTest.ask`), the trial waits for the answers.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.cluster.processes import PROC, family, signal_family
from rehearsal.servers.loopback import RequestRefusal
from tests.cluster_faults.rooms import SPEAKERS, WATCHED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
    from typing import TypeAlias

    from benchmarks.cluster.ray_nodes import RayNode, RayNodes
    from rehearsal.servers.transcription import TranscriptionBehaviour
    from tests.cluster_faults.rooms import RoomUnderTest
    from tests.postgres import PostgresServer

    Fault: TypeAlias = AsyncGenerator[Sequence[RoomUnderTest]]

# Longer than it takes until a node that hangs is given up and its shards are heard elsewhere.
FROZEN_S = 35.0
RECOGNISER_AWAY_S = 20.0
# A bot tries a recogniser again a minute after it was found away (`voice.circuit_breaker`), with the next sentence.
RECOGNISER_BACK_S = 70.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long everything takes. `lead_s`, `follow_s`: people speak before a fault, and after it is over. `back_s`: a
    node that was killed is down. `away_s`: PostgreSQL is away.
    """

    lead_s: float
    follow_s: float
    back_s: float
    away_s: float


@dataclass(slots=True)
class Cluster:
    """What can be broken. `recogniser`: the endpoint that the bots ask first. `told`: what people were told of it.
    `killed`: how many processes have been killed, each in another room.
    """

    nodes: RayNodes
    rooms: Sequence[RoomUnderTest]
    database: PostgresServer
    recogniser: TranscriptionBehaviour
    told: list[bool] = field(default_factory=list)
    killed: int = 0

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


async def nothing(cluster: Cluster, pace: Pace) -> Fault:
    """Nothing breaks: what is lost all the same, the machine is too busy for."""
    del pace
    yield cluster.rooms
    yield ()


async def killed_process(cluster: Cluster, pace: Pace) -> Fault:
    """SIGKILL to the bot of one room after the other, and to all that it has started. Its keeper starts it again."""
    del pace
    pid = cluster.pid_of(cluster.rooms[cluster.killed % len(cluster.rooms)])
    assert pid is not None, "the bot is in its channel"
    cluster.killed += 1
    yield cluster.rooms_of(family(pid))
    signal_family(pid, signal.SIGKILL)
    yield ()


async def lost_node(cluster: Cluster, pace: Pace) -> Fault:
    """SIGKILL to everything on a node, which comes back later."""
    node = cluster.other_node()
    yield cluster.rooms_of(node.pids)
    await cluster.nodes.kill(node)
    yield ()
    await asyncio.sleep(pace.back_s)
    await cluster.nodes.start(node)


async def frozen_node(cluster: Cluster, pace: Pace) -> Fault:
    """SIGSTOP to everything on a node, and SIGCONT when its rooms have gone on elsewhere: for a while two bots have
    each.

    Right before SIGCONT people ask the bot something: it has to answer once, while the process that hung finds out that
    the room is not its own any more. Ray ends what was given up; the node joins again.
    """
    del pace
    node = cluster.other_node()
    rooms = cluster.rooms_of(node.pids)
    yield rooms
    assert node.process is not None, "it runs"
    signal_family(node.process.pid, signal.SIGSTOP)
    yield ()
    frozen = node.pids
    try:
        await asyncio.sleep(FROZEN_S)
        await asyncio.gather(*(room.ask() for room in rooms[:WATCHED]))
    finally:
        for pid in frozen:
            signal_family(pid, signal.SIGCONT)
    await asyncio.gather(*(room.answered() for room in rooms[:WATCHED]))
    await cluster.nodes.kill(node)
    await cluster.nodes.start(node)


async def drained_node(cluster: Cluster, pace: Pace) -> Fault:
    """`roomtone cluster drain`, as before a restart of a machine, which comes back. It takes its time."""
    del pace
    node = cluster.other_node()
    yield cluster.rooms_of(node.pids)
    yield ()
    await cluster.nodes.roomtone("cluster", "drain", node.ip)
    await cluster.nodes.kill(node)
    await cluster.nodes.start(node)


async def recogniser_away(cluster: Cluster, pace: Pace) -> Fault:
    """The endpoint of the bots fails for a while: they hear by themselves, and say so.

    Meanwhile somebody speaks in the watched rooms alone: two cores recognise no more than that by themselves.
    """
    del pace
    yield cluster.rooms[:WATCHED]
    for room in cluster.rooms[WATCHED:]:
        room.quiet.set()
    cluster.recogniser.refuses = RequestRefusal.BROKEN
    yield ()
    await asyncio.sleep(RECOGNISER_AWAY_S)
    # A bot in whose rooms nobody speaks asks no recogniser and knows nothing.
    cluster.told = [await _says(room, "The speech recogniser") for room in cluster.rooms[:WATCHED]]
    cluster.recogniser.refuses = None
    await asyncio.sleep(RECOGNISER_BACK_S)


async def stopped_database(cluster: Cluster, pace: Pace) -> Fault:
    """PostgreSQL is away, with every connection to it, and comes back."""
    yield cluster.rooms
    await asyncio.to_thread(cluster.database.stop)
    yield ()
    await asyncio.sleep(pace.away_s)
    await asyncio.to_thread(cluster.database.start)


FAULTS: dict[str, Callable[[Cluster, Pace], Fault]] = {
    "calm": nothing,
    "process": killed_process,
    "node": lost_node,
    "frozen": frozen_node,
    "drained": drained_node,
    "recogniser": recogniser_away,
    "database": stopped_database,
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
