"""Read single numbers out of a benchmark's nested figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report import Json


def number_at(figures: Json | Mapping[str, Json], *path: str) -> float | None:
    """Return the number at `path`, the names of entries inside each other. None if it was not measured."""
    at: object = figures
    for name in path:
        at = at.get(name) if isinstance(at, dict) else None
    return float(at) if isinstance(at, int | float) and not isinstance(at, bool) else None
