"""How many machines a number of rooms would need, calculated from the kept figures of one machine.

Nothing here was measured at that size: it is the processor time and memory of `roomtone bench cluster`, multiplied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report import Json

# Processes of rooms that one gateway process lets in.
ROOMS = (100, 1_000, 10_000)
# Of each second in a room, so much is speech of somebody: people pause, and wait for each other.
SPEECH_SHARE = 0.5
# Each second of speech is recognised this often: when it has ended, and in part before, in its pauses.
HEARD_TIMES = 1.5
# Machines that worked all the time would let everybody wait.
BUSY_SHARE = 0.5
# A bot is one process, and most of it runs on one core.
BOT_BUSY_SHARE = 0.5
CORES_A_MACHINE = 16
# Of PostgreSQL, that each process keeps at most (docs/postgresql.md).
CONNECTIONS_A_PROCESS = 9
_MB_A_GB = 1_000
NOT_KEPT = "No figures are kept yet: `roomtone bench cluster --json docs/benchmarks/cluster.json` takes them."


@dataclass(frozen=True, slots=True)
class Costs:
    """`heard_cpu_s`: processor time of the service for a second of speech, with Ray's part. `recogniser_mb`, `head_mb`:
    memory. `silent_cpu_s`, `speech_cpu_s`: of a room without recognition, for each second, and more for each second of
    speech. `first_mb`, `room_mb`: memory of a bot with one room, and of each further one.
    """

    heard_cpu_s: float
    recogniser_mb: float
    head_mb: float
    silent_cpu_s: float
    speech_cpu_s: float
    first_mb: float
    room_mb: float

    @property
    def room_cpu_s(self) -> float:
        """Return the processor time of a second in an ordinary room, without recognition."""
        return self.silent_cpu_s + SPEECH_SHARE * self.speech_cpu_s


def recogniser_cores(rooms: int, costs: Costs) -> int:
    """Return how many cores the service needs for so many rooms."""
    return math.ceil(rooms * SPEECH_SHARE * HEARD_TIMES * costs.heard_cpu_s / BUSY_SHARE)


def bots(rooms: int, costs: Costs) -> int:
    """Return how many processes the rooms need."""
    return math.ceil(rooms * costs.room_cpu_s / BOT_BUSY_SHARE)


def sizing_table(report: Mapping[str, Json]) -> list[str]:
    """Return the table, as lines of Markdown; one sentence if the report has not the figures for it."""
    costs = costs_of(report)
    if costs is None:
        return [NOT_KEPT, ""]
    told = (
        f"Calculated, not measured, from {costs.heard_cpu_s:.3g} s of processor time to recognise a second of speech, "
        f"and {costs.room_cpu_s:.3g} s for a second of a room besides: somebody speaks {SPEECH_SHARE:.0%} of the time, "
        f"each second is recognised {HEARD_TIMES:g} times, and machines work {BUSY_SHARE:.0%} of the time. Memory: "
        f"{costs.recogniser_mb:,.0f} MB a recogniser, which takes two cores, {costs.first_mb:,.0f} MB a bot and "
        f"{costs.room_mb:,.0f} MB each further room, {costs.head_mb:,.0f} MB Ray's first machine."
    )
    head = (
        f"| rooms | bots | cores of recognisers | machines of {CORES_A_MACHINE} cores | memory | connections to "
        "PostgreSQL |"
    )
    lines = [told, "", head, "|---|---|---|---|---|---|"]
    for rooms in ROOMS:
        processes, cores = bots(rooms, costs), recogniser_cores(rooms, costs)
        machines = math.ceil((processes + cores) / CORES_A_MACHINE)
        memory_mb = costs.head_mb + math.ceil(cores / 2) * costs.recogniser_mb
        memory_mb += processes * costs.first_mb + (rooms - processes) * costs.room_mb
        figures = (rooms, processes, cores, machines)
        told_figures = " | ".join(f"{each:,}" for each in figures)
        lines.append(f"| {told_figures} | {memory_mb / _MB_A_GB:,.1f} GB | {processes * CONNECTIONS_A_PROCESS:,} |")
    return [*lines, ""]


def costs_of(report: Mapping[str, Json]) -> Costs | None:
    """Return what the report says that each part takes; None if something is missing."""
    ours = report.get("ours")
    entries = [each for each in ours.values() if isinstance(each, dict)] if isinstance(ours, dict) else []
    heard = [each for entry in entries if (each := _number(entry, "whole_cluster_cpu_s_a_speech_s")) is not None]
    memory = [
        (recogniser, head)
        for entry in entries
        if (recogniser := _number(entry, "memory_mb_a_recogniser")) is not None
        and (head := _number(entry, "memory_mb_of_the_head")) is not None
    ]
    found = [
        (rooms, mb, silent, speech)
        for entry in entries
        if (rooms := _number(entry, "rooms"))
        and (mb := _number(entry, "memory_mb")) is not None
        and (silent := _number(entry, "cpu_s_a_silent_s")) is not None
        and (speech := _number(entry, "cpu_s_a_speech_s")) is not None
    ]
    if not heard or not memory or len(found) < 2:
        return None
    (few, few_mb, _, _), (many, many_mb, silent, speech) = min(found), max(found)
    room_mb = max(0.0, (many_mb - few_mb) / (many - few))
    # The largest of the service: whoever sizes machines by the best case has too few.
    return Costs(max(heard), *memory[0], silent, speech, few_mb - (few - 1) * room_mb, room_mb)


def _number(entry: Mapping[str, Json], name: str) -> float | None:
    value = entry.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
