"""The turns of one session that are in memory: append-only and bounded.

A turn is released only if its owner no longer needs it here (it is folded and stored) and the timeline is over its
capacity. If folding is behind, the timeline grows rather than lose a turn. Callers use seqs; list positions are known
to this module alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.model import Seq, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Iterable

# Spec 1's transcript timeline: more than a window usually holds (60, and what a slow run adds).
CAPACITY = 220


class Timeline:
    """Turns `first <= seq < total`, without a gap. Not thread-safe; owned by one session."""

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._first = 0
        self._turns: list[Turn] = []

    @classmethod
    def restored(
        cls, turns: Iterable[Turn], *, first: Seq, total: int, capacity: int = CAPACITY
    ) -> tuple[Timeline, tuple[Seq, ...]]:
        """Return the timeline of a stored session, and the numbers of turns that the store lacks.

        A missing turn becomes a tombstone, so that the numbers have no hole.
        """
        timeline = cls(capacity=capacity)
        timeline._first = first
        timeline._turns, missing = _without_gaps(turns, first, total)
        return timeline, missing

    def restore_older(self, turns: Iterable[Turn], *, first: Seq) -> tuple[Seq, ...]:
        """Add turns from `first` on that were released earlier; return the numbers that `turns` lacks.

        Changes nothing if no turn from `first` on was released.
        """
        older, missing = _without_gaps(turns, first, self._first)
        if older:
            self._turns[:0] = older
            self._first = first
        return missing

    def replace_turns(self, turns: Iterable[Turn]) -> None:
        """Replace those of these turns that are in memory, after words in them were forgotten."""
        for turn in turns:
            if self._first <= turn.seq < self.total:
                self._turns[turn.seq - self._first] = turn

    @property
    def first(self) -> Seq:
        """Return the seq of the oldest turn in memory (or of the next one, when there is none)."""
        return Seq(self._first)

    @property
    def total(self) -> int:
        """Return how many turns the session has had; also the seq of the next one."""
        return self._first + len(self._turns)

    def append(self, turn: Turn) -> None:
        """Add the next turn. Raises ValueError when its number isn't the next one."""
        if turn.seq != self.total:
            raise ValueError(f"Turn {turn.seq} can't follow {self.total} turns.")
        self._turns.append(turn)

    def between(self, start: Seq, end: Seq) -> tuple[Turn, ...]:
        """Return turns `start <= seq < end`. Raises ValueError when some of them have left or are yet to come."""
        if not self._first <= start <= end <= self.total:
            raise ValueError(f"Turns {start} to {end} are not all among {self._first} to {self.total}.")
        return tuple(self._turns[start - self._first : end - self._first])

    def since(self, start: Seq) -> tuple[Turn, ...]:
        """Return all turns from `start` on. Raises ValueError when some of them have left."""
        return self.between(start, Seq(self.total))

    def last(self, count: int) -> tuple[Turn, ...]:
        """Return the newest turns, at most `count` and at most what is in memory."""
        return tuple(self._turns[max(0, len(self._turns) - count) :])

    def release(self, before: Seq) -> int:
        """Drop turns `seq < before`, oldest first, while there are more than the capacity; return how many.

        The caller guarantees that they are stored, and are folded or never sent again.
        """
        count = max(0, min(before - self._first, len(self._turns) - self._capacity))
        del self._turns[:count]
        self._first += count
        return count


def _without_gaps(turns: Iterable[Turn], first: int, end: int) -> tuple[list[Turn], tuple[Seq, ...]]:
    """Return turns `first <= seq < end` with tombstones for missing ones, and the numbers of those."""
    known = {turn.seq: turn for turn in turns}
    whole: list[Turn] = []
    missing: list[Seq] = []
    at = 0.0
    for number in range(first, end):
        seq = Seq(number)
        turn = known.get(seq)
        if turn is None:
            missing.append(seq)
            turn = Turn(seq, TurnKind.SPEECH, at, at, (), tombstone=True)
        at = turn.ended_at
        whole.append(turn)
    return whole, tuple(missing)
