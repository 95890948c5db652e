"""How the times of a run are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Json


def milliseconds(times_s: Sequence[float]) -> dict[str, Json]:
    """Return the median and the 95th percentile of `times_s`, in milliseconds."""
    return {
        "p50": round(1000 * percentile(times_s, 0.5), 1),
        "p95": round(1000 * percentile(times_s, 0.95), 1),
    }
