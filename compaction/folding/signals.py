"""The inputs of `machine` (signals) and its outputs (effects). What listeners and the log receive is in `events`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from compaction.folding.events import FoldFailed, FoldLanded, FoldSkipped
    from compaction.folding.state import Run
    from compaction.model import Chapter, CompactionState, Note, NoteId, RunId, Segment, SegmentId, Seq
    from compaction.ports import Landing
    from compaction.summary.chapters import ChapterDue


class FailureSource(Enum):
    """What caused a run to fail. The fallback helps only if the model was the cause. `CODE`: a bug outside it."""

    MODEL = "model"
    FALLBACK = "fallback"
    STORE = "store"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class DegradedSegment:
    """A segment of turns `start <= seq < end` that was folded by the fallback because the model failed."""

    segment_id: SegmentId
    start: Seq
    end: Seq


# -- signals --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckRequested:
    """Asks whether a batch is due. Sent when context is built, when a turn arrives, or when a run ends.

    A batch is folded only if all its turns are before `stored_turns`. `degraded`: segments to repair, oldest first.
    `chapter`: the next chapter to make.
    """

    total_turns: int
    stored_turns: int
    degraded: tuple[DegradedSegment, ...] = ()
    chapter: ChapterDue | None = None


@dataclass(frozen=True, slots=True)
class FoldMade:
    """The segment or chapter of a run is made, and the new summary is rendered. `at`: UTC epoch seconds."""

    run_id: RunId
    record: Segment | Chapter
    summary: str
    at: float


@dataclass(frozen=True, slots=True)
class LandingWritten:
    """The store applied the landing. `by_model`: see `state.land_run`."""

    run_id: RunId
    prompt_tokens: int | None
    completion_tokens: int | None
    by_model: bool


@dataclass(frozen=True, slots=True)
class StoreAhead:
    """The store has a newer state than this process. `stored` is that state.

    `gone`: notes that were stored earlier and have since been folded or forgotten.
    """

    stored: CompactionState
    ended: bool
    gone: frozenset[NoteId] = frozenset()


@dataclass(frozen=True, slots=True)
class RunFailed:
    """A run ended, and no result was stored."""

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
    """The screen share ended."""


@dataclass(frozen=True, slots=True)
class EndRequested:
    """The caller asked to end the session."""


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    """The run in flight missed its deadline. Its answer is ignored from now on."""

    model: str


@dataclass(frozen=True, slots=True)
class EndingStored:
    """The end of the session is stored."""


Signal: TypeAlias = (
    CheckRequested
    | FoldMade
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
    """Fold the turns and notes of this run. The fallback folds them if the run is degraded."""

    run: Run


@dataclass(frozen=True, slots=True)
class WriteLanding:
    """Write this landing to the store."""

    run_id: RunId
    landing: Landing


@dataclass(frozen=True, slots=True)
class StoreNote:
    """Store this note as a live note."""

    note: Note


@dataclass(frozen=True, slots=True)
class StorePendingNotes:
    """Store that these notes are now pending."""

    note_ids: tuple[NoteId, ...]


@dataclass(frozen=True, slots=True)
class AwaitRun:
    """Wait this long for the run in flight, then send `DeadlinePassed`."""

    run_id: RunId
    seconds: float


@dataclass(frozen=True, slots=True)
class CancelRun:
    """Cancel the run. Its answer is ignored from now on."""

    run_id: RunId


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Log this event and pass it to the listener."""

    event: FoldSkipped | FoldLanded | FoldFailed


Effect: TypeAlias = StartRun | WriteLanding | StoreNote | StorePendingNotes | AwaitRun | CancelRun | EmitEvent
