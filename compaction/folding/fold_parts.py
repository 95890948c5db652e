"""What the folds of one session need: who decides and summarises, where turns come from and results go."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compaction.folding.fold_input import FoldInput
    from compaction.folding.machine import FoldingMachine
    from compaction.folding.outbox import Outbox
    from compaction.folding.state import SessionState
    from compaction.folding.summarisers import Summarisers
    from compaction.model import SessionId
    from compaction.ports import SessionClock
    from compaction.timeline import Timeline


@dataclass(frozen=True, slots=True)
class FoldParts:
    """The parts of one session that its folds share. Not thread-safe.

    `machine`: only the compactor sends it signals; others read the `state`.
    """

    session_id: SessionId
    machine: FoldingMachine
    timeline: Timeline
    outbox: Outbox
    input: FoldInput
    summarisers: Summarisers
    clock: SessionClock

    @property
    def state(self) -> SessionState:
        """Return the state of the session's compaction now."""
        return self.machine.state

    def update_withheld(self) -> bool:
        """Take over who is withheld now; return whether anybody is. Called before anything goes to a model."""
        return self.input.update_withheld(self.state)

    def record_time(self) -> float:
        """Return now (UTC epoch seconds), but always later than the last landing, even if the clock was set back.

        A record that was made with knowledge of another must have the later time: readers order records by it.
        """
        last = self.state.memory.last_at
        return self.clock.now() if last is None else max(self.clock.now(), nextafter(last, inf))
