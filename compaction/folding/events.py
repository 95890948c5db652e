"""What compaction tells of itself: four events, each one log line and one value for whoever listens.

The names and fields are public (docs/operations.md, `roomtone tail`): keep them. None of them says what people
said, but for `FoldLanded.summary`, which listeners get and the log never does.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, TypeAlias

if TYPE_CHECKING:
    from compaction.folding.window import SkipReason
    from compaction.model import RunId, SegmentId, Seq


@dataclass(frozen=True, slots=True)
class FoldSkipped:
    """A check started no run. The first of a reason is told at once with `repeated` 0; its repetitions are told
    once, counted, when the reason changes. `run_id` is the run in flight, if any."""

    name: ClassVar[str] = "voice_context_compaction_skipped"
    run_id: RunId | None
    reason: SkipReason
    cursor: Seq
    total_turns: int
    eligible_count: int
    threshold: int
    pending_note_count: int
    repeated: int


@dataclass(frozen=True, slots=True)
class FoldStarted:
    """A run began: turns `cursor <= seq < cursor + batch_size` are being folded. `repairs`: the segment, folded
    without the model once, that is made again; `cursor` is where it begins then."""

    name: ClassVar[str] = "voice_context_compaction_started"
    run_id: RunId
    cursor: Seq
    batch_size: int
    recent_start: Seq
    pending_note_count: int
    summariser: str
    model: str
    repairs: SegmentId | None = None


@dataclass(frozen=True, slots=True)
class FoldLanded:
    """A run was written to the store. `latency_ms` is from the run's start to the store's answer. `repairs`: the
    segment that was made again; `old_cursor` and `new_cursor` are the same then."""

    name: ClassVar[str] = "voice_context_compaction_completed"
    run_id: RunId
    old_cursor: Seq
    new_cursor: Seq
    covered_through_turn: int
    summary: str
    summary_chars: int
    latency_ms: float
    prompt_tokens: int | None
    completion_tokens: int | None
    folded_note_count: int
    degraded: bool
    repairs: SegmentId | None = None


@dataclass(frozen=True, slots=True)
class FoldFailed:
    """A run left everything as it was. `next_retry_s` is None when nothing will be tried again, or a repair (of the
    segment `repairs`) waits for the model's next success."""

    name: ClassVar[str] = "voice_context_compaction_failed"
    run_id: RunId
    cursor: Seq
    batch_size: int
    pending_note_count: int
    model: str
    error_class: str
    error: str
    timeout: bool
    retryable: bool
    attempt: int
    next_retry_s: float | None
    latency_ms: float
    repairs: SegmentId | None = None


CompactionEvent: TypeAlias = FoldSkipped | FoldStarted | FoldLanded | FoldFailed

# Kept out of the log: what people said.
_SPOKEN = frozenset({"summary"})


def log_fields(event: CompactionEvent) -> dict[str, object]:
    """Return the event's fields as its log line has them; `repairs` is there only when something is made again."""
    values = {each.name: getattr(event, each.name) for each in fields(event) if each.name not in _SPOKEN}
    if values.get("repairs", "") is None:
        del values["repairs"]
    return values
