"""Reports checks that began no run: the first of a reason at once, its repetitions as one count. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.folding.signals import EmitEvent

if TYPE_CHECKING:
    from compaction.folding.events import FoldSkipped


class SkipReports:
    """The last skip of one session, and how many times it was repeated since it was reported."""

    def __init__(self) -> None:
        self._skip: FoldSkipped | None = None
        self._repeated = 0

    def report(self, skip: FoldSkipped) -> tuple[EmitEvent, ...]:
        """Return what to report of a check that was skipped. Nothing if the one before had the same reason."""
        if self._skip is not None and self._skip.reason is skip.reason:
            self._repeated += 1
            self._skip = skip
            return ()
        repeats = self.flush()
        self._skip = skip
        return (*repeats, EmitEvent(skip))

    def flush(self) -> tuple[EmitEvent, ...]:
        """Return the event that reports the counted skips, and reset the count. The next skip is reported at once."""
        skip, repeated = self._skip, self._repeated
        self._skip, self._repeated = None, 0
        if skip is None or repeated == 0:
            return ()
        return (EmitEvent(replace(skip, repeated=repeated)),)
