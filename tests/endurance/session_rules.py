"""What must hold of a session's runs, cursor and notes in random schedules.

Told independently of the machine's own state, from what the walk has sent and heard, as `chapter_rules` does it for
repairs and chapters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.folding.events import FoldSkipped
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW

if TYPE_CHECKING:
    from compaction.folding.events import FoldFailed, FoldLanded
    from compaction.folding.state import Run, SessionState
    from compaction.model import RunId
    from tests.endurance.schedule_store import Stored


class RunRules:
    """The rules for the runs of one process, which begins at `cursor`."""

    def __init__(self, cursor: int) -> None:
        self._highest = cursor
        self._open: set[RunId] = set()
        self._last_skip: FoldSkipped | None = None

    def begun(self, run: Run, state: SessionState, *, total: int, stored_turns: int, was_idle: bool) -> None:
        """Check a run that begins. `was_idle`: nothing else was due."""
        assert not self._open, "two runs in flight"
        assert not state.ending
        if run.moves_cursor_to is not None:
            assert run.start == state.memory.cursor
            # A run of notes alone folds no turns.
            assert run.end - run.start in (0, BATCH_SIZE)
            assert run.start == run.end or run.end <= min(stored_turns, max(0, total - RECENT_WINDOW)), (
                "the window was folded"
            )
        else:
            assert run.end <= state.memory.cursor, "of what is not folded"
            assert was_idle, "a batch is due first"
        self._last_skip = None
        self._open.add(run.id)

    def waits_for(self, run_id: RunId) -> None:
        """Check a run that is awaited or cancelled. Its end is told after it is cancelled."""
        assert run_id in self._open

    def told(self, event: FoldSkipped | FoldLanded | FoldFailed) -> None:
        """Check what listeners are told: the end of each run once, and no skip twice."""
        if isinstance(event, FoldSkipped):
            last = self._last_skip
            assert last is None or last.reason != event.reason or event.repeated, "a skip was told twice"
            self._last_skip = event
            return
        self._last_skip = None
        assert event.run_id in self._open, "the end of a run was told twice, or of none"
        self._open.discard(event.run_id)

    def check(self, state: SessionState, *, most_turns: int) -> None:
        """Check a session at rest. `most_turns`: that it ever had."""
        cursor = state.memory.cursor
        assert cursor >= self._highest, "the cursor went back"
        self._highest = cursor
        assert cursor % BATCH_SIZE == 0
        # A restart loses the turns that were not stored, so the window may be shorter after it than when it was folded.
        assert cursor <= max(0, most_turns - RECENT_WINDOW), "the window was folded"
        assert (state.run is None) == (not self._open), "the run in flight is not the one that was begun"
        assert state.run is None or not state.ended


def check_store(state: SessionState, stored: Stored) -> None:
    """Check that the store and the session have the same cursor and notes, as far as the session has read the store."""
    memory = state.memory
    assert (stored.segments[-1].end if stored.segments else 0) == stored.state.cursor
    kept = {each.id for each in (*state.notes.live, *state.notes.pending)}
    there = stored.live.keys() | stored.pending.keys()
    if stored.is_ahead_of(memory):
        assert memory.revision < stored.state.revision
        assert memory.cursor <= stored.state.cursor
        assert kept >= there, "a note is gone"
    else:
        assert memory.cursor == stored.state.cursor
        assert kept == there, "a note is gone, or there twice"
    assert len(there) + len(stored.folded) + len(stored.forgotten) == len(stored.acknowledged), "a note is gone"
