"""When something on a shared screen gives occasion to speak of one's own accord. Pure: times are handed in.

It proposes the moment; whether the bot speaks at all is the decider's business, and what it says, or that it says
nothing after all, the model's.
"""

from __future__ import annotations

from typing import Final

from compaction.model import NoteReason

# What was seen so long ago is no occasion any more: people have moved on.
STALE_S: Final = 30.0
# A screen that merely goes on is worth a remark more rarely than one on which something happens.
GOES_ON_EVERY_S: Final = 90.0
# The more, the better the occasion; what nobody but the asker waits for is none.
_WORTH: Final = {
    NoteReason.SHARE_START: 3,
    NoteReason.CUT: 2,
    NoteReason.TEXT: 2,
    NoteReason.INTERVAL: 1,
    NoteReason.ASKED: 0,
}


class Commentary:
    """One room's. `every_s`: least time between two remarks; `quiet_s`: how long nobody may have spoken before one.

    Times are monotonic seconds.
    """

    def __init__(self, *, every_s: float, quiet_s: float) -> None:
        self._every_s = every_s
        self._quiet_s = quiet_s
        self._worth = 0
        self._noted_at = 0.0
        self._remarked_at = float("-inf")

    def noted(self, why: NoteReason, *, now: float) -> None:
        """Something was noted. A better occasion takes the place of one that waits; a lesser one does not."""
        worth = _WORTH[why]
        if worth and (not self.waiting(now) or worth >= self._worth):
            self._worth, self._noted_at = worth, now

    def waiting(self, now: float) -> bool:
        """Return whether there is an occasion that has not gone by."""
        return self._worth > 0 and now - self._noted_at < STALE_S

    def gone_by(self) -> None:
        """What was noted so far is no occasion any more: an answer knows of it, or the screen is gone."""
        self._worth = 0

    def due(self, now: float, *, quiet_for_s: float) -> bool:
        """Return whether now is the moment. `quiet_for_s`: for how long nobody has spoken, the bot included."""
        every_s = GOES_ON_EVERY_S if self._worth <= _WORTH[NoteReason.INTERVAL] else self._every_s
        return self.waiting(now) and quiet_for_s >= self._quiet_s and now - self._remarked_at >= every_s

    def taken(self, now: float, *, asked: bool) -> None:
        """The occasion was used. `asked`: the model was asked for a remark, so the next one has to wait."""
        self._worth = 0
        if asked:
            self._remarked_at = now
