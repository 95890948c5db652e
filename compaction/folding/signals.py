"""The two vocabularies of `machine`: what can happen to a session's folding, and what is to be done about it.

Values alone; not to be taken for `events`, which are what the outside is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from compaction.folding.events import FoldFailed, FoldLanded, FoldSkipped
    from compaction.folding.state import Run
    from compaction.model import CompactionState, Note, NoteId, RunId, Segment, SegmentId, Seq
    from compaction.ports import Landing


class FailureSource(Enum):
    """Who made a run fail: that decides whether the fallback can help."""

    MODEL = "model"
    FALLBACK = "fallback"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class DegradedSegment:
    """A segment that was folded without the model, of turns `start <= seq < end`."""

    segment_id: SegmentId
    start: Seq
    end: Seq


# -- what can happen --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckRequested:
    """Context is being built, a turn came, or a run ended: is a batch due? Turns before `stored_turns` are safe
    in the store; a batch that isn't has to wait. `degraded`: segments that the model could make better, with their
    ranges, oldest first."""

    total_turns: int
    stored_turns: int
    degraded: tuple[DegradedSegment, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentMade:
    """A run's segment is made, and the summary that includes it is rendered. `at`: epoch seconds."""

    run_id: RunId
    segment: Segment
    summary: str
    at: float


@dataclass(frozen=True, slots=True)
class LandingWritten:
    """The store took the landing."""

    run_id: RunId
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class StoreAhead:
    """The store knows a later state, and so refuses what was made of an earlier one; this is it.

    `gone`: the notes it was given once and holds no more, folded or forgotten. Those that came while it was asked are
    not among them.
    """

    stored: CompactionState
    ended: bool
    gone: frozenset[NoteId] = frozenset()


@dataclass(frozen=True, slots=True)
class RunFailed:
    """A run ended without a landing."""

    run_id: RunId
    culprit: FailureSource
    error_class: str
    error: str
    timeout: bool
    retryable: bool
    model: str


@dataclass(frozen=True, slots=True)
class NoteAdded:
    """Something was seen on a shared screen."""

    note: Note


@dataclass(frozen=True, slots=True)
class NotesRetired:
    """The share ended."""


@dataclass(frozen=True, slots=True)
class EndRequested:
    """The session is to end."""


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    """The run in flight had its last chance, and whatever it answers now is late."""

    model: str


@dataclass(frozen=True, slots=True)
class EndingStored:
    """The store has the session's ending."""


Signal: TypeAlias = (
    CheckRequested
    | SegmentMade
    | LandingWritten
    | StoreAhead
    | RunFailed
    | NoteAdded
    | NotesRetired
    | EndRequested
    | DeadlinePassed
    | EndingStored
)


# -- what is to be done --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartRun:
    """Fold this run's turns and notes, with the fallback when it is degraded."""

    run: Run


@dataclass(frozen=True, slots=True)
class WriteLanding:
    """Offer this to the store."""

    run_id: RunId
    landing: Landing


@dataclass(frozen=True, slots=True)
class StoreNote:
    """Store this note as a live one."""

    note: Note


@dataclass(frozen=True, slots=True)
class StorePendingNotes:
    """Store that these live notes are pending now."""

    note_ids: tuple[NoteId, ...]


@dataclass(frozen=True, slots=True)
class AwaitRun:
    """Give the run in flight this long, then report DeadlinePassed."""

    run_id: RunId
    seconds: float


@dataclass(frozen=True, slots=True)
class CancelRun:
    """Stop the run: its answer is not wanted any more."""

    run_id: RunId


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Tell this."""

    event: FoldSkipped | FoldLanded | FoldFailed


Effect: TypeAlias = StartRun | WriteLanding | StoreNote | StorePendingNotes | AwaitRun | CancelRun | EmitEvent
