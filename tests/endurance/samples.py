"""What a process uses at one moment of a long run, and whether that stays flat."""

from __future__ import annotations

import asyncio
import gc
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Json

# The beginning fills caches and pools.
SETTLED_SHARE = 0.25
# A shorter time cannot tell the growth of an hour: allocators and caches grow in steps.
LEAST_HOURS = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """`at_s`: room time. `payload_tokens`: of the latest prompt, 0 before the first."""

    at_s: float
    memory_mb: float
    threads: int
    descriptors: int
    tasks: int
    payload_tokens: int


def take_sample(at_s: float, payload_tokens: int) -> Sample:
    """Sample this process. Needs Linux's /proc."""
    gc.collect()
    status = Path("/proc/self/status").read_text("ascii")
    resident_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return Sample(
        at_s=round(at_s, 1),
        memory_mb=round(resident_kb / 1024, 1),
        threads=threading.active_count(),
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        tasks=len(asyncio.all_tasks()),
        payload_tokens=payload_tokens,
    )


def figures(samples: Sequence[Sample]) -> dict[str, Json]:
    """Return the samples as one list for each figure, and how much each grew after the beginning (`flat`)."""
    begun_s = samples[-1].at_s * SETTLED_SHARE if samples else 0.0
    settled = [each for each in samples if each.at_s >= begun_s]
    return {
        "hours": round(samples[-1].at_s / 3600, 3) if samples else 0.0,
        "flat": {
            "samples": len(settled),
            "memory_mb_an_hour": _slope([each.at_s / 3600 for each in settled], [each.memory_mb for each in settled]),
            "hours": round((settled[-1].at_s - settled[0].at_s) / 3600, 3) if settled else 0.0,
            "more_memory_mb": round(settled[-1].memory_mb - settled[0].memory_mb, 1) if settled else None,
            "more_threads": _grown([each.threads for each in settled]),
            "more_descriptors": _grown([each.descriptors for each in settled]),
            "most_payload_tokens": max((each.payload_tokens for each in samples), default=None),
        },
        "samples": {
            "at_s": [each.at_s for each in samples],
            "memory_mb": [each.memory_mb for each in samples],
            "threads": [each.threads for each in samples],
            "descriptors": [each.descriptors for each in samples],
            "tasks": [each.tasks for each in samples],
            "payload_tokens": [each.payload_tokens for each in samples],
        },
    }


def _slope(hours: Sequence[float], values: Sequence[float]) -> float | None:
    """Return the growth of the values in an hour by least squares, None for fewer than three or for a short time."""
    if len(hours) < 3 or hours[-1] - hours[0] < LEAST_HOURS:
        return None
    middle_h, middle = sum(hours) / len(hours), sum(values) / len(values)
    spread = sum((hour - middle_h) ** 2 for hour in hours)
    return round(sum((h - middle_h) * (v - middle) for h, v in zip(hours, values, strict=True)) / spread, 3)


def _grown(values: Sequence[int]) -> int | None:
    """Return how much higher the values are in the second half than in the first, at their highest."""
    half = len(values) // 2
    return max(values[half:]) - max(values[:half]) if half else None
