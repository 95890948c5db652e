"""Decides which turns are due for folding. Pure.

`plan` decides from turn counts alone. `next_batch` asks it, and adds the rest: whether those turns are stored, what
else begins a run (`TRIGGERS`), whether to wait after a failure, and whether compaction is on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from compaction.model import Seq

# How many of the newest turns a model always receives word for word. Spec 1: short and medium sessions fit completely.
RECENT_WINDOW = 50
# How many turns are folded at once. Spec 1: this avoids a summary at every turn.
BATCH_SIZE = 10
# This many pending notes start a run of their own if no turns are due, for example while people watch silently.
PENDING_NOTES_RUN = 48
# The pause after the first failure of a run, and the longest one.
RETRY_BASE_S = 2.0
RETRY_MAX_S = 120.0


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


def plan(total_turns: int, cursor: int, *, in_flight: bool = False, ending: bool = False) -> Batch | Skip:
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
    if total_turns - cursor <= RECENT_WINDOW + BATCH_SIZE:
        return Skip(SkipReason.BELOW_THRESHOLD)
    eligible = eligible_turns(total_turns, cursor)
    return Batch(Seq(cursor), end=Seq(cursor + BATCH_SIZE), recent_start=Seq(cursor + eligible), eligible=eligible)


def eligible_turns(total_turns: int, cursor: int) -> int:
    """Return how many turns are neither folded nor in the recent window."""
    return max(cursor, total_turns - RECENT_WINDOW) - cursor


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits to be folded: the turns from `cursor` on. `total_turns`: see `plan`. `stored_turns`: how many of them
    the store has. `pending_notes`: how many notes wait besides.
    """

    total_turns: int
    cursor: int
    stored_turns: int
    pending_notes: int


Trigger = Callable[[Waiting], Batch | None]


def notes_alone(waiting: Waiting) -> Batch | None:
    """Return a batch without turns once many notes wait."""
    if waiting.pending_notes < PENDING_NOTES_RUN:
        return None
    eligible = eligible_turns(waiting.total_turns, waiting.cursor)
    return Batch(Seq(waiting.cursor), Seq(waiting.cursor), Seq(waiting.cursor + eligible), eligible)


# What begins a run if no turns are due: the first that returns a batch.
TRIGGERS: tuple[Trigger, ...] = (notes_alone,)


def next_batch(waiting: Waiting, *, in_flight: bool, ending: bool, enabled: bool, backing_off: bool) -> Batch | Skip:
    """Return the batch to fold now, or the reason why none is. A batch is folded only if all its turns are stored."""
    if not enabled:
        return Skip(SkipReason.DISABLED)
    due = plan(waiting.total_turns, waiting.cursor, in_flight=in_flight, ending=ending)
    if isinstance(due, Batch) and due.end > waiting.stored_turns:
        due = Skip(SkipReason.NO_ELIGIBLE_BATCH)
    if isinstance(due, Skip) and due.reason in {SkipReason.BELOW_THRESHOLD, SkipReason.NO_ELIGIBLE_BATCH}:
        due = next(filter(None, (trigger(waiting) for trigger in TRIGGERS)), due)
    return Skip(SkipReason.BACKING_OFF) if backing_off and isinstance(due, Batch) else due


def backoff_s(failures: int, jitter: float) -> float:
    """Return how long to pause after this many failures in a row. The pause doubles with each, up to a limit.

    Up to half of it is taken away by `jitter` (0.0-1.0, random), so that not all rooms of one bot call a recovering
    model at the same moment. Rounded to the millisecond, so that the logged pause is exact.
    """
    # The exponent is limited because 2.0 ** 2000 raises OverflowError.
    full = min(RETRY_MAX_S, RETRY_BASE_S * 2.0 ** min(failures - 1, 30))
    return round(full * (0.5 + jitter / 2), 3)
