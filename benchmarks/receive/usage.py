"""CPU seconds by thread, and how late the event loop is."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TASKS = Path("/proc/self/task")
# Threads of C libraries, such as the recogniser's, have no name of ours.
NATIVE = "native libraries"
_NUMBERS = re.compile(r"[-_:]?(0x[0-9a-f]+|\d+)\b.*")
# A sleep of so long should end after so long; what it takes more is the loop's lag.
_SAMPLE_S = 0.01


def cpu_by_thread() -> dict[str, float]:
    """Return the CPU seconds that each thread of this process has used, by its name without numbers.

    Threads that have ended are missing. Empty where the system does not tell.
    """
    names = {thread.native_id: _NUMBERS.sub("", thread.name) for thread in threading.enumerate()}
    used: defaultdict[str, float] = defaultdict(float)
    for task in _TASKS.iterdir() if _TASKS.is_dir() else ():
        try:
            nanoseconds = int((task / "schedstat").read_text("ascii").split()[0])
        except (OSError, ValueError, IndexError):
            continue
        used[names.get(int(task.name), NATIVE)] += nanoseconds / 1e9
    return dict(used)


def shares(before: Mapping[str, float], after: Mapping[str, float], wall_s: float) -> dict[str, float]:
    """Return the share of one core that each thread used in between, the largest first."""
    used = {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}
    ordered = sorted(used.items(), key=lambda item: -item[1])
    return {name: round(seconds / wall_s, 4) for name, seconds in ordered if seconds / wall_s >= 0.0005}


class LoopLag:
    """Samples how late the running event loop is. Use it as an async context manager."""

    def __init__(self) -> None:
        self._samples: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LoopLag:
        self._task = asyncio.create_task(self._sample(), name="loop-lag")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    def take(self) -> list[float]:
        """Return the lags since the last call, in milliseconds."""
        taken, self._samples = self._samples, []
        return taken

    async def _sample(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_SAMPLE_S)
            self._samples.append(max(0.0, time.perf_counter() - before - _SAMPLE_S) * 1000)


def spread_of(lags_ms: Sequence[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the maximum. Empty if nothing was sampled."""
    if not lags_ms:
        return {}
    return {
        "p50_ms": round(percentile(lags_ms, 0.5), 2),
        "p99_ms": round(percentile(lags_ms, 0.99), 2),
        "max_ms": round(max(lags_ms), 2),
    }
