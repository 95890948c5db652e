"""What a process holds, sampled again and again, and whether it grows."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Json

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def holding() -> dict[str, float]:
    """Return what this process holds after a garbage collection: resident memory in MB, threads, file descriptors,
    asyncio tasks, and Python objects. Call it in the event loop.
    """
    gc.collect()
    return {
        "rss_mb": round(int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE_BYTES / 1e6, 2),
        "threads": threading.active_count(),
        "files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "tasks": len(asyncio.all_tasks()),
        "objects": len(gc.get_objects()),
    }


def growth(samples: Sequence[dict[str, float]]) -> dict[str, Json]:
    """Return by how much each figure grew from the second quarter of the samples to the last: the difference of the
    medians. The first quarter is left out, because caches fill then.
    """
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    return {
        name: round(median(each[name] for each in late) - median(each[name] for each in early), 2)
        for name in samples[0]
    }
