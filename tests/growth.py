"""Measures how the CPU time of a function grows with its input."""

from __future__ import annotations

import time
from collections.abc import Callable

# Twice the input takes twice the time if the function is linear, and four times if it is quadratic.
LINEAR = 3.0
# Below this the clock measures little but its own noise.
_LEAST_S = 0.002


def cpu_growth(run: Callable[[str], object], unit: str, *, chars: int = 10_000) -> float:
    """Return how much more CPU time `run` takes for twice a row of `unit`, from two doublings.

    A growth that isn't linear is measured up to three times, and the smallest counts: other work on the machine only
    adds. A fast run counts as 2 ms.
    """
    short = unit * (chars // len(unit))
    growth = _growth(run, short)
    for _ in range(2):
        if growth < LINEAR:
            break
        growth = min(growth, _growth(run, short))
    return growth


def _growth(run: Callable[[str], object], short: str) -> float:
    return float((max(_LEAST_S, _least_s(run, short * 4)) / max(_LEAST_S, _least_s(run, short))) ** 0.5)


def _least_s(run: Callable[[str], object], text: str) -> float:
    return min(_cpu_s(run, text) for _ in range(3))


def _cpu_s(run: Callable[[str], object], text: str) -> float:
    started_at = time.thread_time()
    run(text)
    return time.thread_time() - started_at
