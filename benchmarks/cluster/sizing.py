"""How much a number of rooms would need: the figures of one machine, multiplied. Nothing is measured at that size.

A bot is one process, most of which runs on one core. Who sizes machines by the best case has too few.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.figures import number_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report import Json

ROOMS = (100, 1_000, 10_000)
# Of each second in a room, so much is speech of somebody, and each second of it is recognised this often: when it has
# ended, and in part before, in its pauses.
SPEECH_SHARE, HEARD_TIMES = 0.5, 1.5
# Machines that worked all the time would let everybody wait.
BUSY_SHARE = 0.5
ASSUMED = (
    f"Sizes are calculated: somebody speaks {SPEECH_SHARE:.0%} of the time, each second is recognised {HEARD_TIMES:g} "
    f"times, cores work {BUSY_SHARE:.0%} of the time, and a recogniser takes two of them."
)


def sizes(ours: Mapping[str, Json]) -> dict[str, Json]:
    """Return bots, cores of recognisers and memory for some numbers of rooms; nothing without the figures for it."""
    entries = [name for name, each in ours.items() if isinstance(each, dict)]
    heard = [each for name in entries if (each := number_at(ours, name, "cpu_s_a_speech_s")) and "at once" in name]
    bots = sorted((rooms, name) for name in entries if (rooms := number_at(ours, name, "rooms")))
    recogniser_mb, head_mb = (
        number_at(ours, "cluster", f"memory_mb_{each}") for each in ("a_recogniser", "of_the_head")
    )
    if not heard or len(bots) < 2 or recogniser_mb is None or head_mb is None:
        return {}
    (few, first), *_, (many, last) = bots
    few_mb, many_mb = (number_at(ours, name, "memory_mb") or 0.0 for name in (first, last))
    room_mb = max(0.0, (many_mb - few_mb) / (many - few))
    silent_s, speech_s = (number_at(ours, last, f"cpu_s_a_{each}_s") or 0.0 for each in ("silent", "speech"))
    found: dict[str, Json] = {}
    for rooms in ROOMS:
        processes = math.ceil(rooms * (silent_s + SPEECH_SHARE * speech_s) / BUSY_SHARE)
        cores = math.ceil(rooms * SPEECH_SHARE * HEARD_TIMES * max(heard) / BUSY_SHARE)
        memory_mb = head_mb + math.ceil(cores / 2) * recogniser_mb
        memory_mb += processes * (few_mb - few * room_mb) + rooms * room_mb
        found[f"{rooms:,} rooms"] = {
            "bots": processes,
            "cores_of_recognisers": cores,
            "memory_gb": round(memory_mb / 1_000, 1),
        }
    return found
