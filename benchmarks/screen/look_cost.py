"""Simulates an hour of sharing: how often a vision model is called, and how long it takes until a new scene is seen.

Roomtone calls the model after a change, and sooner after a larger one. Other programs call it at a fixed interval.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.stats import percentile
from voice.screen.frame_diff import WHOLE, ChangeKind
from voice.screen.note_schedule import LookIntervals, PendingChange

if TYPE_CHECKING:
    from benchmarks.progress import Progress
    from benchmarks.report import Json

HOUR_S = 3_600
# Activities on a screen: the changes in each second, with their probabilities.
_PHASES: dict[str, dict[ChangeKind, float]] = {
    "plays": {ChangeKind.VISUAL: 0.8, ChangeKind.CUT: 0.01, ChangeKind.TEXT: 0.1},
    "reads": {ChangeKind.TEXT: 0.08, ChangeKind.VISUAL: 0.01},
    "writes": {ChangeKind.TEXT: 0.6},
    "looks at a menu": {ChangeKind.TEXT: 0.3, ChangeKind.CUT: 0.05},
    "is away": {},
}
_PHASE_S = (20, 240)
# Intervals that programs with fixed intervals use.
INTERVALS_S = (5, 10, 30)


@dataclass(frozen=True, slots=True)
class LookCounts:
    """The results of one method: the model calls in an hour, and the seconds until each new scene was seen."""

    looks: int
    cut_waits_s: tuple[float, ...]


def simulate_hour(rng: random.Random) -> list[ChangeKind]:
    """Return the change in each second of an hour."""
    seconds = [ChangeKind.FIRST]
    while len(seconds) < HOUR_S:
        phase = _PHASES[rng.choice(tuple(_PHASES))]
        seconds.append(ChangeKind.CUT)
        for _ in range(rng.randint(*_PHASE_S)):
            draw = rng.random()
            for change, chance in phase.items():
                draw -= chance
                if draw < 0:
                    seconds.append(change)
                    break
            else:
                seconds.append(ChangeKind.SAME)
    return seconds[:HOUR_S]


def adaptive_looks(seconds: list[ChangeKind], pace: LookIntervals) -> LookCounts:
    """Return the results of Roomtone's method."""
    pending, looked_at, looks = PendingChange(), float("-inf"), 0
    unseen: list[int] = []
    waits: list[float] = []
    for second, change in enumerate(seconds):
        if change is not ChangeKind.SAME:
            pending = pending.together(PendingChange(change, (WHOLE,)))
        if change is ChangeKind.CUT:
            unseen.append(second)
        due_at = pending.due_at(looked_at, pace)
        if due_at is not None and due_at <= second:
            pending, looked_at, looks = PendingChange(), float(second), looks + 1
            waits += [float(second - at) for at in unseen]
            unseen.clear()
    return LookCounts(looks, tuple(waits))


def fixed_looks(seconds: list[ChangeKind], every_s: int) -> LookCounts:
    """Return the results of looking at a fixed interval."""
    waits = [float(-second % every_s) for second, change in enumerate(seconds) if change is ChangeKind.CUT]
    return LookCounts(len(seconds) // every_s, tuple(waits))


def measure_look_cost(hours: int, seed: int, progress: Progress) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the figures of Roomtone's method, and those of each fixed interval by name."""
    pace = LookIntervals()
    progress.step("hours", total=hours)
    our: list[LookCounts] = []
    peers: dict[int, list[LookCounts]] = {every_s: [] for every_s in INTERVALS_S}
    for number in range(hours):
        seconds = simulate_hour(random.Random(seed * 1_000 + number))  # noqa: S311 - a simulation, no secret
        our.append(adaptive_looks(seconds, pace))
        for every_s, found in peers.items():
            found.append(fixed_looks(seconds, every_s))
        progress.advance()
    return _figures(our), {f"every {every_s} s": _figures(found) for every_s, found in peers.items()}


def _figures(found: list[LookCounts]) -> dict[str, Json]:
    waits = [wait for each in found for wait in each.cut_waits_s]
    return {
        "model_calls_per_hour": round(sum(each.looks for each in found) / len(found), 1),
        "cut_seen_after_s_p50": percentile(waits, 0.5),
        "cut_seen_after_s_p95": percentile(waits, 0.95),
    }
