"""The four figures of LiveKit's eot-bench: how much each source cuts at two delays, and how late it is at two shares.

Each source gives a score at the beginning of a pause. With a score above a threshold the speech ends after the shortest
silence, with another after the longest. All such rules are tried, as eot-bench does, so a figure tells
what a source can do at best on these pauses. Pure.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.figures import percentile
from benchmarks.listen.observed_pauses import COUNTED_FROM_S, ObservedPause
from voice.listening.end_policy import PauseEvidence, hesitation_s
from voice.listening.endpointing import WINDOW_S, window_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.report import Json

    Score: TypeAlias = Callable[[PauseEvidence], float]

# eot-bench's two delays, in the mean, and its two shares of pauses cut.
DELAYS_S, CUT_SHARES = (0.3, 0.6), (0.05, 0.1)
SHORTEST_S, LONGEST_S = (0.2, 0.3, 0.4, 0.5, 0.6), (0.5, 0.7, 0.9, 1.1, 1.4, 1.7, 2.1)
SILENCES = range(window_count(COUNTED_FROM_S), window_count(2.5))
# The thresholds that are tried have these shares of the ends' scores below them.
_SHARES = tuple(step / 16 for step in range(1, 16))


# What tells an end from a pause: the end-of-turn model, the length of the speech and the own pauses, and all of them.
SOURCES: Mapping[str, Score] = {
    "sound": lambda known: -hesitation_s(PauseEvidence(finished=known.finished)),
    "person": lambda known: -hesitation_s(replace(known, finished=None)),
    "all": lambda known: -hesitation_s(known),
}


@dataclass(frozen=True, slots=True)
class Point:
    """What one rule does: the share of pauses that it cuts, and the mean time after which it knows an end."""

    cut_share: float
    known_after_s: float


def operating_points(pauses: Sequence[ObservedPause]) -> dict[str, Json]:
    """Return the four figures of silence alone and of each source."""
    table: dict[str, Json] = {"silence": _figures([point(pauses, [most] * len(pauses)) for most in SILENCES])}
    return table | {name: _figures(_tried(pauses, score)) for name, score in SOURCES.items()}


def point(pauses: Sequence[ObservedPause], needed: Sequence[int]) -> Point:
    """Return what a rule does. `needed`: after how many silent windows it ends the speech before each pause."""
    inside = [
        windows <= pause.windows for pause, windows in zip(pauses, needed, strict=True) if pause.windows is not None
    ]
    known = [
        pause.known_after_s(windows * WINDOW_S) for pause, windows in zip(pauses, needed, strict=True) if pause.is_end
    ]
    return Point(fmean(inside) if inside else 0.0, fmean(known) if known else 0.0)


def _tried(pauses: Sequence[ObservedPause], score: Score) -> list[Point]:
    """Return what each rule does that uses this score."""
    scores = [score(pause.evidence) for pause in pauses]
    ends = [scored for pause, scored in zip(pauses, scores, strict=True) if pause.is_end]
    # The first one every score reaches, the last one none: then silence decides alone.
    thresholds = [-math.inf, *sorted({percentile(ends, share) for share in _SHARES}), math.inf] if ends else []
    points: list[Point] = []
    for shortest_s, longest_s, threshold in itertools.product(SHORTEST_S, LONGEST_S, thresholds):
        least, most = window_count(shortest_s), window_count(longest_s)
        points.append(point(pauses, [min(least, most) if scored >= threshold else most for scored in scores]))
    return points


def _figures(points: Sequence[Point]) -> dict[str, Json]:
    """Return the least share cut at each delay, and the least delay at each share; None where no rule reaches it."""
    figures: dict[str, Json] = {}
    for delay_s in DELAYS_S:
        cut = min((each.cut_share for each in points if each.known_after_s <= delay_s), default=None)
        figures[f"cut_share_at_{delay_s * 1000:.0f}_ms"] = None if cut is None else round(cut, 4)
    for share in CUT_SHARES:
        known = min((each.known_after_s for each in points if each.cut_share <= share), default=None)
        figures[f"known_after_ms_at_{share * 100:.0f}_percent_cut"] = None if known is None else round(known * 1000)
    return figures
