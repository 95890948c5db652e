"""The model of random schedules: when it fails, and what is made of a run."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from compaction.folding.signals import RunFailed
from tests.compaction.turn_store_contract import segment
from tests.endurance.schedule_store import chapter_of

if TYPE_CHECKING:
    from compaction.folding.signals import FailureSource
    from compaction.folding.state import Run
    from compaction.model import Chapter, Segment


class Mood(Enum):
    """How the model answers for some time."""

    WELL = "well"
    FAILS = "fails"
    REFUSES_CHAPTERS = "refuses chapters"

    def refuses(self, run: Run) -> bool:
        """Return whether it may fail at this run."""
        return self is Mood.FAILS or (self is Mood.REFUSES_CHAPTERS and run.chapter is not None)


def record_of(run: Run, *, at: float) -> Segment | Chapter:
    """Return what is made of a run, well. `at`: UTC epoch seconds."""
    if run.chapter is not None:
        return chapter_of(run.chapter, at=at)
    made = segment(run.start, run.end, note_ids=run.note_ids, name=run.repairs or f"{run.id}")
    return replace(made, degraded=run.degraded, created_at=at)


def failure_of(run: Run, culprit: FailureSource, *, retryable: bool) -> RunFailed:
    """Return how the machine is told that a run failed."""
    return RunFailed(run.id, culprit, "Error", "no", timeout=False, retryable=retryable, model="m")
