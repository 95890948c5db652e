"""Make figures of values, and read single numbers out of a benchmark's nested figures."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.report import Json


# A figure of fewer cases shows that something happens and not how often.
LEAST_CASES = 50


def few(count: float, sample: str) -> str:
    """Return a sample as readers see it: 'seen in 24 utterances' where it is too small to tell a share."""
    return f"seen in {sample}" if count < LEAST_CASES else sample


def number_at(figures: Json | Mapping[str, Json], *path: str) -> float | None:
    """Return the number at `path`, the names of entries inside each other. None if it was not measured."""
    at: object = figures
    for name in path:
        at = at.get(name) if isinstance(at, dict) else None
    return float(at) if isinstance(at, int | float) and not isinstance(at, bool) else None


def sample_at(figures: Json | Mapping[str, Json], what: str, *path: str) -> str:
    """Return how many were counted at `path`, for example '30,500 frames'; empty if nothing was. `what`: the unit."""
    count = number_at(figures, *path)
    return "" if count is None else few(count, f"{count:,.0f} {what}")


def counted_of(figures: Json | Mapping[str, Json], what: str, path: Sequence[str], failed: float | None) -> str:
    """Return how many of those at `path` did not fail, for example '7 of 8 answers'; empty if none were counted."""
    count = number_at(figures, *path)
    if count is None:
        return ""
    return few(count, f"{count - failed:,.0f} of {count:,.0f} {what}" if failed else f"{count:,.0f} {what}")


def cut_sample(figures: Json | Mapping[str, Json], *path: str) -> str:
    """Return how many of the pauses at `path` were cut, for example '10 of 146 pauses'; empty if none were counted."""
    found, inside = number_at(figures, *path, "cut"), number_at(figures, *path, "pauses_inside")
    return "" if found is None or inside is None else few(inside, f"{found:.0f} of {inside:.0f} pauses")


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value such that at least `share` (0-1) of the values are not larger."""
    return float(np.quantile(values, share, method="inverted_cdf"))


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
