"""How many machines a number of rooms would need, calculated from the kept figures of one machine.

Nothing here was measured at that size: it is the processor time and memory of `roomtone bench cluster`, multiplied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.report import Json

# Processes of rooms that one gateway process lets in.
MOST_LINKS = 2_000
ROOMS = (100, 1_000, 10_000)
# Of each second in a room, so much is speech of somebody: people pause, and wait for each other.
SPEECH_SHARE = 0.5
# Each second of speech is recognised this often: when it has ended, and in part before, in its pauses.
HEARD_TIMES = 1.5
# Recognisers that worked all the time would let everybody wait. At this share, half of the calls find one that is free.
BUSY_SHARE = 0.5
# Rooms send a packet every 20 ms while they speak, and read as many: a machine that is busier than this delays them.
ROOMS_BUSY_SHARE = 0.6
# Threads of one recogniser (asr.cpu_threads), which it reserves as CPUs.
THREADS = 2
CORES_A_MACHINE = 16
MEMORY_GB_A_MACHINE = 64
# If one machine of rooms is lost, the others take over what it had.
SPARE_MACHINES = 1
# Loaded processes that each machine of rooms keeps for rooms to come (`roomtone cluster rooms --waiting`).
WAITING_PROCESSES = 1
# Of PostgreSQL, that each process keeps at most (docs/postgresql.md).
CONNECTIONS_A_PROCESS = 9
# Several gateway processes share their log, for which each keeps one more (bot/shared_log).
CONNECTIONS_FOR_SHARED_LOG = 1
_MB_A_GB = 1_000
NOT_KEPT = "No figures are kept yet: `roomtone bench cluster --json docs/benchmarks/cluster.json` takes them."


@dataclass(frozen=True, slots=True)
class RoomCosts:
    """What a room in a process takes, in the largest run of its kind.

    `own_mb`: memory that it shares with nobody. `silent_cpu_s`, `speech_cpu_s`: processor time for each second, and
    besides for each second of speech, without recognition. `each`: how many rooms shared a process. `measured`: how
    many rooms that run had.
    """

    own_mb: float
    silent_cpu_s: float
    speech_cpu_s: float
    each: int
    measured: int

    @property
    def cpu_s(self) -> float:
        """Return the processor time of a second in an ordinary room."""
        return self.silent_cpu_s + SPEECH_SHARE * self.speech_cpu_s

    @property
    def process_mb(self) -> float:
        """Return the memory of a process with its rooms. One that waits for rooms to come has their models too."""
        return self.each * self.own_mb


def sizing_table(report: Mapping[str, Json]) -> list[str]:
    """Return the tables, as lines of Markdown; one sentence if the report has not the figures for them."""
    pool = _pool_costs(report)
    if pool is None:
        return [NOT_KEPT, ""]
    rooms = _room_costs(report)
    told = [_about_rooms(), ""] if rooms else []
    return [*_pool_table(*pool), *told, *(line for costs in rooms for line in _room_table(costs))]


def recognisers_for(rooms: int, cpu_s: float) -> int:
    """Return how many recognisers the rooms need. `cpu_s`: processor time for one second of speech."""
    return math.ceil(rooms * SPEECH_SHARE * HEARD_TIMES * cpu_s / BUSY_SHARE / THREADS)


def room_machines_for(rooms: int, costs: RoomCosts) -> int:
    """Return how many machines the rooms themselves need, by processor time or by memory, with those that may fail."""
    by_cpu = rooms * costs.cpu_s / ROOMS_BUSY_SHARE / CORES_A_MACHINE
    by_memory = rooms * costs.own_mb / (MEMORY_GB_A_MACHINE * _MB_A_GB - WAITING_PROCESSES * costs.process_mb)
    return math.ceil(max(by_cpu, by_memory)) + SPARE_MACHINES


def rooms_of_a_gateway(each: int) -> int:
    """Return how many rooms one gateway process can have in processes of `each` rooms on other machines: each process
    opens a link for each of them, and one for an emergency.
    """
    return MOST_LINKS // (each + 1) * each


def gateways_for(rooms: int, each: int) -> int:
    """Return how many gateway processes the rooms need at least."""
    return math.ceil(rooms / rooms_of_a_gateway(each))


def connections_for(rooms: int, each: int) -> int:
    """Return how many connections to PostgreSQL the processes of rooms and of gateways keep at most."""
    gateways = gateways_for(rooms, each)
    shared_log = CONNECTIONS_FOR_SHARED_LOG * gateways if gateways > 1 else 0
    return (math.ceil(rooms / each) + gateways) * CONNECTIONS_A_PROCESS + shared_log


def _pool_table(cpu_s: float, recogniser_mb: float, head_mb: float) -> list[str]:
    told = (
        f"Calculated, not measured, from {cpu_s:.3g} s of processor time for each second of speech, with Ray's own "
        f"part, {recogniser_mb:,.0f} MB a recogniser and {head_mb:,.0f} MB for the head: somebody speaks "
        f"{SPEECH_SHARE:.0%} of the time, each second is recognised {HEARD_TIMES:g} times (in pauses, and at the end), "
        f"and recognisers work {BUSY_SHARE:.0%} of the time."
    )
    machines = f"machines of {CORES_A_MACHINE} cores"
    head = f"| rooms | recognisers of {THREADS} threads | CPU cores | {machines} | memory of recognisers and head |"
    lines = [told, "", head, "|---|---|---|---|---|"]
    for rooms in ROOMS:
        recognisers = recognisers_for(rooms, cpu_s)
        cores = recognisers * THREADS
        memory_gb = (recognisers * recogniser_mb + head_mb) / _MB_A_GB
        needed = math.ceil(cores / CORES_A_MACHINE)
        lines.append(f"| {rooms:,} | {recognisers:,} | {cores:,} | {needed:,} | {memory_gb:,.1f} GB |")
    return [*lines, ""]


def _about_rooms() -> str:
    """Return what holds for rooms however many share a process."""
    return (
        "The rooms themselves come on top, calculated in the same way, without recognition. Machines work "
        f"{ROOMS_BUSY_SHARE:.0%} of the time, keep {WAITING_PROCESSES} process that waits (`--waiting`), and there is "
        "one more than needed, for the rooms of one that fails. A "
        f"gateway process takes {MOST_LINKS:,} links from other machines, of which each process opens one for each of "
        "its rooms and one more; a bot with more rooms has [several gateway processes](sharding.md). Each process "
        f"keeps up to {CONNECTIONS_A_PROCESS} connections to PostgreSQL, also one that waits, which is not in the "
        "tables; each of several gateway processes keeps one more. PostgreSQL allows 100 by default and has a process "
        "of its own for each, and one transaction writes at a time for all of them (a lock). What one PostgreSQL "
        "carries was not measured: where it would need thousands of connections, it is the limit, and not the machines."
    )


def _room_table(costs: RoomCosts) -> list[str]:
    told = (
        f"With {costs.each} in a process (`--rooms-each`), from a run of {costs.measured} rooms: {costs.own_mb:,.0f} "
        f"MB a room, {costs.silent_cpu_s:.3g} s of processor time a second, and {costs.speech_cpu_s:.3g} s more for "
        f"each second of speech. A gateway process has {rooms_of_a_gateway(costs.each):,} rooms on other machines at "
        "most, fewer by the processes that wait."
    )
    size = f"{CORES_A_MACHINE} cores and {MEMORY_GB_A_MACHINE} GB"
    head = f"| rooms | CPU cores | memory | machines of {size} | gateway processes | connections to PostgreSQL |"
    lines = [told, "", head, "|---|---|---|---|---|---|"]
    for rooms in ROOMS:
        cores = math.ceil(rooms * costs.cpu_s / ROOMS_BUSY_SHARE)
        machines = room_machines_for(rooms, costs)
        memory_gb = (rooms * costs.own_mb + machines * WAITING_PROCESSES * costs.process_mb) / _MB_A_GB
        needed = (machines, gateways_for(rooms, costs.each), connections_for(rooms, costs.each))
        lines.append(f"| {rooms:,} | {cores:,} | {memory_gb:,.1f} GB | {' | '.join(f'{each:,}' for each in needed)} |")
    return [*lines, ""]


def _pool_costs(report: Mapping[str, Json]) -> tuple[float, float, float] | None:
    """Return processor time a second of speech, of the recognisers and of all that Ray does for them, and the memory of
    a recogniser and of the head; None if not there.
    """
    entries = _entries(report)
    costs = [value for entry in entries.values() for value in _numbers(entry, "whole_cluster_cpu_s_a_speech_s")]
    cluster = entries.get("cluster")
    memory = [*_numbers(cluster, "memory_mb_a_recogniser"), *_numbers(cluster, "memory_mb_of_the_head")]
    if not costs or len(memory) != 2:
        return None
    # The largest: whoever sizes machines by the best case has too few.
    return max(costs), memory[0], memory[1]


def _room_costs(report: Mapping[str, Json]) -> list[RoomCosts]:
    """Return what a room takes, from the largest run with each number of rooms in a process."""
    names = ("rooms_each", "rooms", "own_memory_mb_a_room", "cpu_s_a_silent_s", "cpu_s_a_speech_s")
    found = [[value for name in names for value in _numbers(entry, name)] for entry in _entries(report).values()]
    largest = {each[0]: each for each in sorted(found) if len(each) == len(names)}
    return [
        RoomCosts(own_mb, silent_cpu_s, speech_cpu_s, each=round(each), measured=round(rooms))
        for each, rooms, own_mb, silent_cpu_s, speech_cpu_s in largest.values()
    ]


def _entries(report: Mapping[str, Json]) -> Mapping[str, Json]:
    ours = report.get("ours")
    return ours if isinstance(ours, dict) else {}


def _numbers(entry: Json, name: str) -> Iterator[float]:
    value = entry.get(name) if isinstance(entry, dict) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
