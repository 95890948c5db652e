"""The inputs of `machine` (signals) and its outputs (effects). `events` are what listeners and the log get."""

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
    """What made a run fail; the fallback helps only if it was the model."""

    MODEL = "model"
    FALLBACK = "fallback"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class DegradedSegment:
    """A segment that was folded without the model: turns `start <= seq < end`."""

    segment_id: SegmentId
    start: Seq
    end: Seq


# -- signals --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckRequested:
    """Check whether a batch is due: context is built, a turn came, or a run ended.

    A batch is folded only if all its turns are before `stored_turns`. `degraded`: segments to repair, oldest first.
    """

    total_turns: int
    stored_turns: int
    degraded: tuple[DegradedSegment, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentMade:
    """A run's segment is made, and the summary with it is rendered. `at`: UTC epoch seconds."""

    run_id: RunId
    segment: Segment
    summary: str
    at: float


@dataclass(frozen=True, slots=True)
class LandingWritten:
    """The store applied the landing."""

    run_id: RunId
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class StoreAhead:
    """The store has a later state than this process; `stored` is that state.

    `gone`: notes that were stored once and are not any more, because they were folded or forgotten.
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
    """A note of a shared screen arrived."""

    note: Note


@dataclass(frozen=True, slots=True)
class NotesRetired:
    """The share ended."""


@dataclass(frozen=True, slots=True)
class EndRequested:
    """The caller asked to end the session."""


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    """The deadline of the run in flight is over; its answer is ignored from now on."""

    model: str


@dataclass(frozen=True, slots=True)
class EndingStored:
    """The end of the session is stored."""


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


# -- effects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartRun:
    """Fold this run's turns and notes, with the fallback if the run is degraded."""

    run: Run


@dataclass(frozen=True, slots=True)
class WriteLanding:
    """Write this landing to the store."""

    run_id: RunId
    landing: Landing


@dataclass(frozen=True, slots=True)
class StoreNote:
    """Store this note as a live one."""

    note: Note


@dataclass(frozen=True, slots=True)
class StorePendingNotes:
    """Store that these notes are pending now."""

    note_ids: tuple[NoteId, ...]


@dataclass(frozen=True, slots=True)
class AwaitRun:
    """Wait this long for the run in flight, then send `DeadlinePassed`."""

    run_id: RunId
    seconds: float


@dataclass(frozen=True, slots=True)
class CancelRun:
    """Cancel the run; its answer is not used any more."""

    run_id: RunId


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Log this event and pass it to the listener."""

    event: FoldSkipped | FoldLanded | FoldFailed


Effect: TypeAlias = StartRun | WriteLanding | StoreNote | StorePendingNotes | AwaitRun | CancelRun | EmitEvent
