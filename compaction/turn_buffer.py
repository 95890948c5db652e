"""The turns of one session that are in memory: an append-only list of limited length.

A turn is released only if the buffer is over its capacity and the turn is folded and stored, so that the owner
doesn't need it here. If folding is late, the buffer grows, so that no turn is lost. Callers use seqs; only this
module uses list positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.model import Seq, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Iterable

# Spec 1's transcript timeline. This is more than a window usually holds (60 turns, and those added during a slow run).
CAPACITY = 220


class TurnBuffer:
    """Turns `first <= seq < total`, without a gap. Not thread-safe; owned by one session."""

    def __init__(self, turns: Iterable[Turn] = (), *, first: int = 0, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        # The seq of the oldest turn in memory. If there is none, that of the next turn.
        self.first = Seq(first)
        self._turns = list(turns)

    @classmethod
    def restored(cls, turns: Iterable[Turn], *, first: Seq, total: int) -> tuple[TurnBuffer, tuple[Seq, ...]]:
        """Return the buffer of a stored session, and the seqs of turns that are missing from the store.

        A missing turn becomes a tombstone (a turn without words), so that the numbers have no gap.
        """
        whole, missing = _without_gaps(turns, first, total)
        return cls(whole, first=first), missing

    def restore_older(self, turns: Iterable[Turn], *, first: Seq) -> tuple[Seq, ...]:
        """Add turns that were released earlier, from `first` on. Returns the seqs that are missing from `turns`.

        Nothing changes if no turn from `first` on was released.
        """
        older, missing = _without_gaps(turns, first, self.first)
        if older:
            self._turns[:0] = older
            self.first = first
        return missing

    def replace_turns(self, turns: Iterable[Turn]) -> None:
        """Replace turns after words in them were forgotten. Turns that are not in memory are ignored."""
        for turn in turns:
            if self.first <= turn.seq < self.total:
                self._turns[turn.seq - self.first] = turn

    @property
    def total(self) -> int:
        """Return how many turns the session has had. This is also the seq of the next turn."""
        return self.first + len(self._turns)

    def append(self, turn: Turn) -> None:
        """Add the next turn, whose number is `total`."""
        self._turns.append(turn)

    def between(self, start: Seq, end: Seq) -> tuple[Turn, ...]:
        """Return turns `start <= seq < end`. Raises ValueError if some of them were released or don't exist yet."""
        if not self.first <= start <= end <= self.total:
            raise ValueError(f"Turns {start} to {end} are not all among {self.first} to {self.total}.")
        return tuple(self._turns[start - self.first : end - self.first])

    def since(self, start: Seq) -> tuple[Turn, ...]:
        """Return all turns from `start` on. Raises ValueError if some of them were released."""
        return self.between(start, Seq(self.total))

    def last(self, count: int) -> tuple[Turn, ...]:
        """Return the newest turns: at most `count`, or fewer if fewer are in memory."""
        return tuple(self._turns[max(0, len(self._turns) - count) :])

    def release(self, before: Seq) -> None:
        """Drop turns with `seq < before`, oldest first, until the capacity is met.

        The caller guarantees that these turns are stored, and that they are folded or will not be sent again.
        """
        count = max(0, min(before - self.first, len(self._turns) - self._capacity))
        del self._turns[:count]
        self.first = Seq(self.first + count)


def _without_gaps(turns: Iterable[Turn], first: int, end: int) -> tuple[list[Turn], tuple[Seq, ...]]:
    """Return turns `first <= seq < end` with tombstones in place of missing turns, and the seqs of the
    missing turns.
    """
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
