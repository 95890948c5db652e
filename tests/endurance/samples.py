"""What a process uses at one moment of a long run, and whether that stays flat."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import threading
from dataclasses import dataclass
from itertools import combinations
from math import ceil, floor, sqrt
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Json

# What is done for the first time takes memory: the first fold, the first search, the longest sentence so far. In one
# run of twelve minutes malloc's memory was level from the seventh on; another had a step of 43 MB in its twelfth.
WARM_UP_S = 480.0
# A shorter time after that cannot tell the growth of an hour: allocators and caches grow in steps.
LEAST_HOURS = 0.18
# Of the interval in which the growth lies, in standard deviations: 95 %.
_CONFIDENCE = 1.96


@dataclass(frozen=True, slots=True)
class Sample:
    """`at_s`: room time. `payload_tokens`: of the latest prompt, 0 before the first.

    `memory_mb` (resident), `allocated_mb`, `threads` and `descriptors` are at their lowest since the sample before if
    somebody looked (`LeastUse`). `mapped_mb` of the memory are pages of files (libraries, models) that the system can
    take back. `allocated_mb`: what malloc has handed out and not got back; None without glibc. Python's own small
    objects are not in it.
    """

    at_s: float
    memory_mb: float
    mapped_mb: float
    allocated_mb: float | None
    threads: int
    descriptors: int
    tasks: int
    payload_tokens: int


@dataclass(frozen=True, slots=True)
class Use:
    """What a process uses at one moment, as in `Sample`."""

    memory_mb: float
    allocated_mb: float | None
    threads: int
    descriptors: int

    def least(self, other: Use) -> Use:
        """Return the least of each figure."""
        told = [each for each in (self.allocated_mb, other.allocated_mb) if each is not None]
        return Use(
            min(self.memory_mb, other.memory_mb),
            min(told, default=None),
            min(self.threads, other.threads),
            min(self.descriptors, other.descriptors),
        )


class LeastUse:
    """The least that a process used between two samples. While somebody is recognised, a room needs up to 170 MB more
    for a moment, and a second request to the model has a socket of its own; a sample that happens to meet that is no
    growth.
    """

    def __init__(self) -> None:
        self._least: Use | None = None

    def look(self) -> None:
        """Read what is used now."""
        now = Use(
            _mb(_status()["VmRSS"]),
            allocated_mb(),
            threading.active_count(),
            len(list(Path("/proc/self/fd").iterdir())),
        )
        self._least = now if self._least is None else now.least(self._least)

    def take(self) -> Use:
        """Return the least since the last time."""
        self.look()
        assert self._least is not None, "looked just now"
        least, self._least = self._least, None
        return least


def take_sample(at_s: float, payload_tokens: int, least: LeastUse | None = None) -> Sample:
    """Sample this process. `least`: has looked since the sample before. Needs Linux's /proc."""
    gc.collect()
    used = (least or LeastUse()).take()
    return Sample(
        at_s=round(at_s, 1),
        memory_mb=used.memory_mb,
        mapped_mb=_mb(_status()["RssFile"]),
        allocated_mb=used.allocated_mb,
        threads=used.threads,
        descriptors=used.descriptors,
        tasks=len(asyncio.all_tasks()),
        payload_tokens=payload_tokens,
    )


def _status() -> dict[str, str]:
    return dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines())


def _mb(kilobytes: str) -> float:
    """Convert a size in /proc/self/status ("1234 kB")."""
    return round(int(kilobytes.split()[0]) / 1024, 1)


class _MallocFigures(ctypes.Structure):
    """`struct mallinfo2` (mallinfo(3)), summed over all arenas."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def allocated_mb() -> float | None:
    """Return what glibc's malloc has handed out, small and large blocks. None with another C library."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return None
    mallinfo2.restype = _MallocFigures
    found = mallinfo2()
    return round(float(found.uordblks + found.hblkhd) / 2**20, 1)


def figures(samples: Sequence[Sample]) -> dict[str, Json]:
    """Return the samples as one list for each figure, and how much each grew after the warm-up (`flat`)."""
    settled = [each for each in samples if each.at_s >= WARM_UP_S]
    memory = [each.memory_mb for each in settled]
    tenth = max(1, len(settled) // 10)
    hours = [each.at_s / 3600 for each in settled]
    line = middle_line(hours, memory)
    handed_out = [each.allocated_mb for each in settled if each.allocated_mb is not None]
    # Without what malloc holds free, and without Python's small objects.
    inner = middle_line(hours, handed_out) if len(handed_out) == len(hours) else None
    return {
        "hours": round(samples[-1].at_s / 3600, 3) if samples else 0.0,
        "flat": {
            "samples": len(settled),
            "warm_up_s": WARM_UP_S,
            "hours": round((settled[-1].at_s - settled[0].at_s) / 3600, 3) if settled else 0.0,
            "memory_mb_an_hour": None if line is None else round(line.an_hour, 3),
            "memory_mb_an_hour_between": None if line is None else [round(line.least, 3), round(line.most, 3)],
            "allocated_mb_an_hour": None if inner is None else round(inner.an_hour, 3),
            "allocated_mb_an_hour_between": None if inner is None else [round(inner.least, 3), round(inner.most, 3)],
            "more_memory_mb": round(median(memory[-tenth:]) - median(memory[:tenth]), 1) if settled else None,
            "more_threads": _grown([each.threads for each in settled]),
            "more_descriptors": _grown([each.descriptors for each in settled]),
            "most_payload_tokens": max((each.payload_tokens for each in samples), default=None),
        },
        "samples": {
            "at_s": [each.at_s for each in samples],
            "memory_mb": [each.memory_mb for each in samples],
            "mapped_mb": [each.mapped_mb for each in samples],
            "allocated_mb": [each.allocated_mb for each in samples],
            "threads": [each.threads for each in samples],
            "descriptors": [each.descriptors for each in samples],
            "tasks": [each.tasks for each in samples],
            "payload_tokens": [each.payload_tokens for each in samples],
        },
    }


@dataclass(frozen=True, slots=True)
class MiddleLine:
    """The slope of a line through samples. `least`, `most`: between these it lies with a probability of 95 %, if the
    samples are independent.
    """

    an_hour: float
    least: float
    most: float


def middle_line(hours: Sequence[float], values: Sequence[float]) -> MiddleLine | None:
    """Return the line whose slope is the median of the slopes between all pairs (Theil and Sen), so that a single peak
    does not count. Its interval is Sen's, by the ranks of the slopes. None for fewer than three values or for a short
    time.
    """
    if len(hours) < 3 or hours[-1] - hours[0] < LEAST_HOURS:
        return None
    points = sorted(zip(hours, values, strict=True))
    slopes = sorted((b - a) / (at_b - at_a) for (at_a, a), (at_b, b) in combinations(points, 2) if at_b > at_a)
    an_hour = median(slopes)
    count = len(points)
    width = _CONFIDENCE * sqrt(count * (count - 1) * (2 * count + 5) / 18)
    least = slopes[max(0, floor((len(slopes) - width) / 2) - 1)]
    most = slopes[min(len(slopes) - 1, ceil((len(slopes) + width) / 2))]
    return MiddleLine(an_hour, least, most)


def _grown(values: Sequence[int]) -> int | None:
    """Return how much higher the values are in the second half than in the first, at their highest."""
    half = len(values) // 2
    return max(values[half:]) - max(values[:half]) if half else None
