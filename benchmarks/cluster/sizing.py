"""How many machines a number of rooms would need, calculated from the kept figures of one machine.

Nothing here was measured at that size: it is the processor time and memory of `roomtone bench cluster`, multiplied.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.report import Json

ROOMS = (100, 1_000, 10_000)
# Of each second in a room, so much is speech of somebody: people pause, and wait for each other.
SPEECH_SHARE = 0.5
# Each second of speech is recognised this often: when it has ended, and in part before, in its pauses.
HEARD_TIMES = 1.5
# Recognisers that worked all the time would let everybody wait. At this share, half of the calls find one that is free.
BUSY_SHARE = 0.5
# Threads of one recogniser (asr.cpu_threads), which it reserves as CPUs.
THREADS = 2
CORES_A_MACHINE = 16
_MB_A_GB = 1_000
NOT_KEPT = "No figures are kept yet: `roomtone bench cluster --json docs/benchmarks/cluster.json` takes them."


def sizing_table(report: Mapping[str, Json]) -> list[str]:
    """Return the table, as lines of Markdown; one sentence if the report has not the figures for it."""
    found = _costs(report)
    if found is None:
        return [NOT_KEPT, ""]
    cpu_s, recogniser_mb, head_mb = found
    told = (
        f"Calculated, not measured, from {cpu_s:.3g} s of processor time for each second of speech, "
        f"{recogniser_mb:,.0f} MB a recogniser and {head_mb:,.0f} MB for the head: somebody speaks {SPEECH_SHARE:.0%} "
        f"of the time, each second is recognised {HEARD_TIMES:g} times (in pauses, and at the end), and "
        f"recognisers work {BUSY_SHARE:.0%} of the time."
    )
    machines = f"machines of {CORES_A_MACHINE} cores"
    head = f"| rooms | recognisers of {THREADS} threads | CPU cores | {machines} | memory of recognisers and head |"
    lines = [told, "", head, "|---|---|---|---|---|"]
    lines += [_row(rooms, cpu_s, recogniser_mb, head_mb) for rooms in ROOMS]
    return [*lines, ""]


def recognisers_for(rooms: int, cpu_s: float) -> int:
    """Return how many recognisers the rooms need. `cpu_s`: processor time for one second of speech."""
    return math.ceil(rooms * SPEECH_SHARE * HEARD_TIMES * cpu_s / BUSY_SHARE / THREADS)


def _row(rooms: int, cpu_s: float, recogniser_mb: float, head_mb: float) -> str:
    recognisers = recognisers_for(rooms, cpu_s)
    cores = recognisers * THREADS
    memory_gb = (recognisers * recogniser_mb + head_mb) / _MB_A_GB
    machines = math.ceil(cores / CORES_A_MACHINE)
    return f"| {rooms:,} | {recognisers:,} | {cores:,} | {machines:,} | {memory_gb:,.1f} GB |"


def _costs(report: Mapping[str, Json]) -> tuple[float, float, float] | None:
    """Return processor time a second of speech, and the memory of a recogniser and of the head; None if not there."""
    ours = report.get("ours")
    entries = ours if isinstance(ours, dict) else {}
    costs = [value for entry in entries.values() for value in _numbers(entry, "recognisers_cpu_s_a_speech_s")]
    cluster = entries.get("cluster")
    memory = [*_numbers(cluster, "memory_mb_a_recogniser"), *_numbers(cluster, "memory_mb_of_the_head")]
    if not costs or len(memory) != 2:
        return None
    # The largest: whoever sizes machines by the best case has too few.
    return max(costs), memory[0], memory[1]


def _numbers(entry: Json, name: str) -> Iterator[float]:
    value = entry.get(name) if isinstance(entry, dict) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
