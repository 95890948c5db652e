"""How times are reported: the median, the mean, the 95th percentile and the maximum."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Json


def spread(values: Sequence[float]) -> dict[str, Json]:
    """Return the median, the mean, the 95th percentile and the maximum of the measured values.

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
