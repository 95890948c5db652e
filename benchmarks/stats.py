"""Shares and percentiles, used by all benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
