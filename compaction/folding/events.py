"""The four events of compaction. Each one is written to the log and passed to listeners.

Event names and fields are public (docs/monitoring.md, `roomtone tail`), so they must not change. No event contains what
people said, except `FoldLanded.summary`, which is not logged.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from compaction.errors import CompactionError

if TYPE_CHECKING:
    from compaction.folding.window import SkipReason
    from compaction.model import RunId, SegmentId, Seq


@dataclass(frozen=True, slots=True)
class FoldSkipped:
    """A check started no run.

    The first skip for a reason is reported at once with `repeated` 0. Further skips for the same reason are counted,
    and the count is reported once, when the reason changes. `run_id`: the run in flight, if any.
    """

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
    """A run began to fold turns `cursor <= seq < cursor + batch_size`.

    `repairs`: the degraded segment that the run makes again. `chapter_level`: the level of the chapter that the run
    makes. In both, `cursor` is the first turn of the segment or chapter.
    """

    name: ClassVar[str] = "voice_context_compaction_started"
    run_id: RunId
    cursor: Seq
    batch_size: int
    recent_start: Seq
    pending_note_count: int
    summariser: str
    model: str
    repairs: SegmentId | None = None
    chapter_level: int | None = None


@dataclass(frozen=True, slots=True)
class FoldLanded:
    """The result of a run was stored. `latency_ms`: from the start of the run to the store's answer.

    `repairs`: the segment that was made again. `chapter_level`: the level of the chapter that was made. In both,
    `old_cursor` and `new_cursor` are equal. `paragraph_by`: who wrote the paragraph of this fold; a repair has none.
    `paragraph_problem`: why the model's paragraph was not used, without a word of it.
    """

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
    chapter_level: int | None = None
    paragraph_by: Literal["model", "code", "nobody"] = "code"
    paragraph_problem: str = ""


@dataclass(frozen=True, slots=True)
class FoldFailed:
    """A run failed and changed nothing.

    `next_retry_s` is None if there is no retry. It is also None for a repair (of the segment `repairs`) and for a
    chapter (of `chapter_level`), because they are retried after a later landing and not at a fixed time.
    """

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
    chapter_level: int | None = None


CompactionEvent: TypeAlias = FoldSkipped | FoldStarted | FoldLanded | FoldFailed

# Fields that contain what people said, so they are not logged.
_NOT_LOGGED = frozenset({"summary"})
# Fields that hold a sentence of our own, without a word that anybody said.
_SENTENCES = ("error", "paragraph_problem")
# Fields that are logged only if they are set.
_OPTIONAL = ("repairs", "chapter_level")


def log_fields(event: CompactionEvent) -> dict[str, object]:
    """Return the fields of the event's log line, without the unset optional ones and without what people said."""
    values = {each.name: getattr(event, each.name) for each in fields(event) if each.name not in _NOT_LOGGED}
    for name in _SENTENCES:
        if values.get(name):
            # A log shows the text of our own errors only.
            values[name] = CompactionError(values[name])
    for name in _OPTIONAL:
        if values.get(name, "") is None:
            del values[name]
    return values
