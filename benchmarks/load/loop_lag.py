"""How late the event loop is."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from benchmarks.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

# A sleep of so long should end after so long; what it takes more is the loop's lag.
_SAMPLE_S = 0.01


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
