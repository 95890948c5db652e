"""The turns of one session that are in memory: append-only, bounded, numbered for ever.

A turn leaves only when its owner says that nothing needs it here any more (it is folded and stored), and only
while the timeline is over its capacity. When folding is behind, the timeline grows rather than lose a turn.
Numbers never shift: everything outside speaks of seqs, and only this module knows of list positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.model import Seq, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Iterable

# Spec 1's transcript timeline: more than the window can hold in ordinary times (60, and what a slow run adds).
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
        """Return the timeline of a session read back from its store, and the numbers that the store lacked.

        A number without a turn gets a tombstone: the words are lost already, and a hole would lose the rest.
        """
        timeline = cls(capacity=capacity)
        timeline._first = first
        timeline._turns, missing = _without_gaps(turns, first, total)
        return timeline, missing

    def restore_older(self, turns: Iterable[Turn], *, first: Seq) -> tuple[Seq, ...]:
        """Take turns that left earlier in again, those from `first` on; return the numbers that `turns` lacks.

        Nothing changes when none from `first` on have left.
        """
        older, missing = _without_gaps(turns, first, self._first)
        if older:
            self._turns[:0] = older
            self._first = first
        return missing

    def replace_turns(self, turns: Iterable[Turn]) -> None:
        """Have these turns as they are given, those of them that are in memory: somebody's words were forgotten."""
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
        """Let turns `seq < before` go, oldest first, while there are more than the capacity. Return how many went.

        The caller vouches that they are stored, and folded or never to be sent again.
        """
        count = max(0, min(before - self._first, len(self._turns) - self._capacity))
        del self._turns[:count]
        self._first += count
        return count


def _without_gaps(turns: Iterable[Turn], first: int, end: int) -> tuple[list[Turn], tuple[Seq, ...]]:
    """Return turns `first <= seq < end`, tombstones in the place of missing ones, and which those are."""
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
