"""Shares and percentiles, used by all benchmarks."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Json


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value such that at least `share` (0-1) of the values are not larger. Raises ValueError if
    empty.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    rank = max(0, -(-round(share * 1e6) * len(ordered) // 1_000_000) - 1)
    return ordered[min(rank, len(ordered) - 1)]


def share_of(count: float, whole: int) -> float | None:
    """Return `count / whole`, rounded for display, or None if `whole` is 0."""
    return round(count / whole, 4) if whole else None


def spread(values: Sequence[float]) -> dict[str, Json]:
    """Return the number of values, their median, mean, 95th percentile and maximum.

    The mean is told because ends of speech are of two kinds, sure and not: where about half are sure, two of them move
    the median by hundreds of milliseconds.
    """
    if not values:
        return {"count": 0}
    return {
        "count": len(values),
        "p50": round(percentile(values, 0.5), 1),
        "mean": round(fmean(values), 1),
        "p95": round(percentile(values, 0.95), 1),
        "max": round(max(values), 1),
    }
