"""Decides which turns of a session a model is sent word for word, and which must stay in memory, by the memory mode.

Pure, over the session's timeline. In the mode `off` these are the last turns, in `summary` all that are not folded. In
`rolling` the oldest of those are evicted when they no longer fit, or when nobody has asked for so long that there are
too many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.context.build import summarize_eviction
from compaction.model import Mode, Seq
from compaction.window import RECENT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.budget.rolling import EvictedTurns
    from compaction.model import Turn
    from compaction.timeline import Timeline

# In the rolling mode, turns are evicted when the bot is about to speak. While the bot is silent, older turns are
# evicted once there are more turns than this, which is more than any model is sent at once.
ROLLING_TURNS = 2_000


class SessionWindow:
    """The window of one session's `timeline`. `cursor` is the first turn that is not folded."""

    def __init__(self, timeline: Timeline, mode: Mode) -> None:
        self._timeline = timeline
        self._mode = mode
        self._evicted: EvictedTurns | None = None

    @property
    def mode(self) -> Mode:
        """Return the mode that is used."""
        return self._mode

    @property
    def evicted(self) -> EvictedTurns | None:
        """Return what was evicted so far; None outside the rolling mode."""
        return self._evicted

    def change_mode(self, mode: Mode) -> None:
        """Use another mode. What was evicted comes back, as far as it is still in memory."""
        self._mode, self._evicted = mode, None

    def turns(self, cursor: Seq) -> tuple[Turn, ...]:
        """Return the turns that a model is sent word for word, oldest first."""
        if self._mode is Mode.OFF:
            return self._timeline.last(RECENT_WINDOW)
        if self._evicted is not None:
            return self._timeline.since(Seq(max(cursor, self._evicted.until)))
        return self._timeline.since(cursor)

    def needed_from(self, cursor: Seq, *, stored_turns: int) -> Seq:
        """Return the first turn that must stay in memory. `stored_turns`: how many of the first are in the store."""
        if self._mode is Mode.OFF:
            # In this mode nothing is folded, and nothing older than the window is sent.
            return Seq(max(0, min(stored_turns, self._timeline.total - RECENT_WINDOW)))
        if self._evicted is not None:
            return Seq(max(cursor, min(stored_turns, self._evicted.until)))
        return cursor

    def evict(self, evicted: EvictedTurns | None) -> int | None:
        """Take over what was evicted so far. Returns how many turns are new in it, or None if nothing changed."""
        if self._mode is not Mode.ROLLING or evicted is None or evicted == self._evicted:
            return None
        before = 0 if self._evicted is None else self._evicted.count
        self._evicted = evicted
        return evicted.count - before

    def surplus(self, window: Sequence[Turn]) -> EvictedTurns | None:
        """Return what is to be evicted if `window` is longer than any payload could send, so that half of
        `ROLLING_TURNS` remain; None if it is not.
        """
        if self._mode is not Mode.ROLLING or len(window) <= ROLLING_TURNS:
            return None
        gone = summarize_eviction(window[: len(window) - ROLLING_TURNS // 2])
        return gone if self._evicted is None else self._evicted.plus(gone)
