"""A run, the four events of compaction that tell of it, and the reporter that logs them and tells a listener.

Their fields are public (`roomtone tail`), so they must not change. No event contains what people
said, except `RunLanded.summary` and `RunFailed.detail`, which are not logged.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from compaction.errors import CompactionError, CompletionError, StaleOwnerError, StoreError, SummaryRefusedError
from compaction.log_events import MemoryEvent
from compaction.window import BATCH_SIZE, RECENT_WINDOW, Batch, SkipReason, eligible_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    import structlog

    from compaction.model import CompactionState, Note, RunId, Seq

# The maximum length of an error text in an event.
_ERROR_CHARS = 200
# May hold what people said.
_NOT_LOGGED = {"summary", "detail"}
# Their texts are ours and hold nothing that people said.
_OWN_ERRORS = (CompletionError, SummaryRefusedError, StoreError, StaleOwnerError)


@dataclass(frozen=True, slots=True)
class RunSkipped:
    """A check started no run.

    The first skip for a reason is reported at once with `repeated` 0. Further skips for the same reason are counted,
    and the count is reported once, when the reason changes. `run_id`: the run in flight, if any.
    """

    name: ClassVar[MemoryEvent] = MemoryEvent.RUN_SKIPPED
    run_id: RunId | None
    reason: SkipReason
    cursor: Seq
    total_turns: int
    eligible_count: int
    threshold: int
    pending_note_count: int
    repeated: int


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run began to fold turns `cursor <= seq < cursor + batch_size`."""

    name: ClassVar[MemoryEvent] = MemoryEvent.RUN_STARTED
    run_id: RunId
    cursor: Seq
    batch_size: int
    recent_start: Seq
    pending_note_count: int
    summariser: str
    model: str


@dataclass(frozen=True, slots=True)
class RunLanded:
    """The result of a run was stored. `latency_ms`: from the start of the run to the store's answer.

    `unsourced`: how many figures and names of the summary the request does not hold.
    """

    name: ClassVar[MemoryEvent] = MemoryEvent.RUN_COMPLETED
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
    unsourced: int


@dataclass(frozen=True, slots=True)
class RunFailed:
    """A run failed and changed nothing. `next_retry_s` is None if there is no retry. `detail`: the text of what a
    program's own function raised.
    """

    name: ClassVar[MemoryEvent] = MemoryEvent.RUN_FAILED
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
    detail: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt to fold a batch and the notes that were pending when it began. `started_at`: monotonic seconds."""

    id: RunId
    batch: Batch
    notes: tuple[Note, ...]
    attempt: int
    started_at: float

    def started(self, *, summariser: str, model: str) -> RunStarted:
        return RunStarted(
            run_id=self.id,
            cursor=self.batch.start,
            batch_size=self.batch.end - self.batch.start,
            recent_start=self.batch.recent_start,
            pending_note_count=len(self.notes),
            summariser=summariser,
            model=model,
        )

    def landed(
        self,
        before: CompactionState,
        after: CompactionState,
        *,
        folded_notes: int,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        unsourced: int,
        now: float,
    ) -> RunLanded:
        """`folded_notes`: how many notes the run told of. `unsourced`: as in `RunLanded`. `now`: monotonic seconds."""
        summary = after.summary or ""
        return RunLanded(
            run_id=self.id,
            old_cursor=before.cursor,
            new_cursor=after.cursor,
            covered_through_turn=after.covered_through_turn,
            summary=summary,
            summary_chars=len(summary),
            latency_ms=self._latency_ms(now),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            folded_note_count=folded_notes,
            unsourced=unsourced,
        )

    def failed(
        self, exc: BaseException, *, model: str, within_s: float, pending: int, next_retry_s: float | None, now: float
    ) -> RunFailed:
        """`within_s`: the summariser's deadline. `pending`: how many notes wait. `now`: monotonic seconds."""
        timeout = isinstance(exc, TimeoutError) or (isinstance(exc, CompletionError) and exc.timeout)
        error = "The fold broke."
        if isinstance(exc, _OWN_ERRORS):
            error = str(exc)[:_ERROR_CHARS]
        elif timeout:
            error = f"No summary within {within_s:g} s."
        return RunFailed(
            run_id=self.id,
            cursor=self.batch.start,
            batch_size=self.batch.end - self.batch.start,
            pending_note_count=pending,
            model=model,
            error_class=type(exc).__name__,
            error=error,
            timeout=timeout,
            retryable=not isinstance(exc, CompletionError) or exc.retryable,
            attempt=self.attempt,
            next_retry_s=next_retry_s,
            latency_ms=self._latency_ms(now),
            detail=exc.detail[:_ERROR_CHARS] if isinstance(exc, CompletionError) else "",
        )

    def _latency_ms(self, now: float) -> float:
        return round((now - self.started_at) * 1000.0, 1)


def is_defect(exc: BaseException) -> bool:
    """Return whether a run failed by a bug, and not by a cause that its event tells."""
    return not isinstance(exc, (*_OWN_ERRORS, TimeoutError))


CompactionEvent: TypeAlias = RunSkipped | RunStarted | RunLanded | RunFailed


class EventReporter:
    """The reporter of one session. `on_event`: the listener; it must not block. Nothing that it raises gets out.

    Skipped checks are reported once for each reason: the first at once, its repetitions as one count.
    """

    def __init__(
        self, log: structlog.typing.FilteringBoundLogger, on_event: Callable[[CompactionEvent], None] | None
    ) -> None:
        self.log = log
        self._on_event = on_event
        # The last skip, with how often it was repeated.
        self._skip: RunSkipped | None = None

    def skip(self, reason: SkipReason, run: Run | None, *, cursor: Seq, total_turns: int, pending: int) -> None:
        """Report a check that started no run, unless the one before had the same reason. `run`: the one in flight."""
        skip = RunSkipped(
            run_id=None if run is None else run.id,
            reason=reason,
            cursor=cursor,
            total_turns=total_turns,
            eligible_count=eligible_turns(total_turns, cursor),
            threshold=RECENT_WINDOW + BATCH_SIZE,
            pending_note_count=pending,
            repeated=0,
        )
        if self._skip is not None and self._skip.reason is reason:
            self._skip = replace(skip, repeated=self._skip.repeated + 1)
            return
        self.emit(skip)
        self._skip = skip

    def emit(self, event: CompactionEvent) -> None:
        """Report an event; before a skip and the start of a run those skips that were counted."""
        if isinstance(event, (RunSkipped, RunStarted)):
            counted, self._skip = self._skip, None
            if counted is not None and counted.repeated:
                self.emit(counted)
        level = self.log.warning if isinstance(event, RunFailed) else self.log.info
        level(event.name, **log_fields(event))
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception as exc:  # noqa: BLE001 - a listener's error must not stop the compaction
                self.warn(MemoryEvent.LISTENER_FAILED, exc)

    def warn(self, name: MemoryEvent, exc: BaseException) -> None:
        """Log a defect under `name`, with its class and where it was raised: its text may hold what people said."""
        self.log.warning(name, error_class=type(exc).__name__, exc_info=exc)


def log_fields(event: CompactionEvent) -> dict[str, object]:
    """Return the fields of the event's log line, without what people said."""
    values = {each.name: getattr(event, each.name) for each in fields(event) if each.name not in _NOT_LOGGED}
    if "error" in values:
        # A log shows the text of our own errors only.
        values["error"] = CompactionError(values["error"])
    return values
