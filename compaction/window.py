"""Decides which turns are due for folding. Pure.

`plan` decides from turn counts alone. `next_batch` asks it, and adds the rest: whether those turns are stored, whether
enough notes wait without turns, whether to wait after a failure, and whether compaction is on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from compaction.model import Seq

# How many of the newest turns a model always receives word for word. Spec 1: short and medium sessions fit completely.
RECENT_WINDOW = 50
# How many turns are folded at once. Spec 1: this avoids a summary at every turn.
BATCH_SIZE = 10
# This many pending notes start a run of their own if no turns are due, for example while people watch silently.
PENDING_NOTES_RUN = 48


class SkipReason(StrEnum):
    """Why a check started no run. The first three come from `plan`, in the order of its checks; `next_batch` adds the
    others.
    """

    SESSION_ENDING = "session_ending"
    ALREADY_IN_FLIGHT = "already_in_flight"
    BELOW_THRESHOLD = "below_threshold"
    NO_ELIGIBLE_BATCH = "no_eligible_batch"
    DISABLED = "disabled"
    BACKING_OFF = "backing_off"


@dataclass(frozen=True, slots=True)
class Batch:
    """The turns `start <= seq < end` are due for folding.

    `recent_start`: the first turn of the recent window. `eligible`: how many unfolded turns are before that window.
    """

    start: Seq
    end: Seq
    recent_start: Seq
    eligible: int


@dataclass(frozen=True, slots=True)
class Skip:
    """No batch is due."""

    reason: SkipReason


def plan(
    total_turns: int,
    cursor: int,
    *,
    in_flight: bool = False,
    ending: bool = False,
    recent_window: int = RECENT_WINDOW,
    batch_size: int = BATCH_SIZE,
) -> Batch | Skip:
    """Return the batch that is due, or the reason why none is due. Source: spec 1, 'Exact batch selection'.

    `total_turns`: how many turns the session has had, including folded and forgotten turns; this is also the next seq.
    `cursor`: the first seq that is not folded. Raises ValueError if the numbers contradict each other.
    """
    if not 0 <= cursor <= total_turns:
        raise ValueError(f"The cursor must lie between 0 and {total_turns} turns, not at {cursor}.")
    if ending:
        return Skip(SkipReason.SESSION_ENDING)
    if in_flight:
        return Skip(SkipReason.ALREADY_IN_FLIGHT)
    if total_turns - cursor <= recent_window + batch_size:
        return Skip(SkipReason.BELOW_THRESHOLD)
    eligible = eligible_turns(total_turns, cursor, recent_window=recent_window)
    return Batch(
        start=Seq(cursor), end=Seq(cursor + batch_size), recent_start=Seq(cursor + eligible), eligible=eligible
    )


def eligible_turns(total_turns: int, cursor: int, *, recent_window: int = RECENT_WINDOW) -> int:
    """Return how many turns are neither folded nor in the recent window."""
    return max(cursor, total_turns - recent_window) - cursor


def next_batch(
    total_turns: int,
    cursor: int,
    *,
    stored_turns: int,
    pending_notes: int,
    in_flight: bool,
    ending: bool,
    enabled: bool,
    backing_off: bool,
) -> Batch | Skip:
    """Return the batch to fold now, or the reason why none is. A batch without turns folds notes alone.

    A batch is folded only if all its turns are before `stored_turns`.
    """
    if not enabled:
        return Skip(SkipReason.DISABLED)
    due = plan(total_turns, cursor, in_flight=in_flight, ending=ending)
    if isinstance(due, Batch) and due.end > stored_turns:
        due = Skip(SkipReason.NO_ELIGIBLE_BATCH)
    if isinstance(due, Skip):
        idle = due.reason in {SkipReason.BELOW_THRESHOLD, SkipReason.NO_ELIGIBLE_BATCH}
        if not idle or pending_notes < PENDING_NOTES_RUN:
            return due
        eligible = eligible_turns(total_turns, cursor)
        due = Batch(Seq(cursor), Seq(cursor), Seq(cursor + eligible), eligible)
    return Skip(SkipReason.BACKING_OFF) if backing_off else due


def backoff_s(failures: int, *, base_s: float, max_s: float, jitter: float) -> float:
    """Return how long to pause after this many failures in a row. The pause doubles with each, up to a limit.

    Up to half of it is taken away by `jitter` (0.0-1.0, random), so that not all rooms of one bot call a recovering
    model at the same moment. Rounded to the millisecond, so that the logged pause is exact.
    """
    # The exponent is limited because 2.0 ** 2000 raises OverflowError.
    full = min(max_s, base_s * 2.0 ** min(failures - 1, 30))
    return round(full * (0.5 + jitter / 2), 3)
