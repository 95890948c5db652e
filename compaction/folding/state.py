"""The state of one session's compaction and the functions that change it: begin, land or fail a run, end the session.

The state is an immutable value and all functions are pure. They ignore the answer of any run except the run in flight.
Only `land_run` and `adopt_stored` move the cursor.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compaction.model import CompactionState, Seq
from compaction.notes import NoteBuffer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from compaction.model import NoteId, RunId, SegmentId
    from compaction.ports import Landing
    from compaction.summary.chapters import ChapterDue


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt to fold turns `start <= seq < end` and some pending notes. If start == end, it folds notes only.

    `degraded`: the fallback folds, because the model keeps failing. `repairs`: the degraded segment that the run makes
    again. `chapter`: the chapter that the run makes instead of a segment. `started_at`: monotonic seconds. `landing`:
    set while the result is being stored.
    """

    id: RunId
    start: Seq
    end: Seq
    recent_start: Seq
    note_ids: tuple[NoteId, ...]
    attempt: int
    degraded: bool
    started_at: float
    landing: Landing | None = None
    repairs: SegmentId | None = None
    chapter: ChapterDue | None = None

    @property
    def batch_size(self) -> int:
        """Return how many turns the run folds."""
        return self.end - self.start

    @property
    def moves_cursor_to(self) -> Seq | None:
        """Return the cursor after the run has landed; None if it stays, as for repairs and chapters."""
        return self.end if self.repairs is None and self.chapter is None else None

    @property
    def chapter_level(self) -> int | None:
        """Return the level of the chapter that the run makes, if it makes one."""
        return None if self.chapter is None else self.chapter.level


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of one session's compaction. Times are monotonic seconds.

    `failures`: failed runs since the last landing. `model_failures`: failures of the model since its last landing. No
    run starts before `hold_until`. Until `model_rest_until` the fallback is used instead of the model. `model_well`:
    the last run in which the model was asked was stored; segments are repaired only if this is true. `failed_repairs`:
    how many repairs failed by the model or because turns are gone, by segment. `chapter_allowed`: a batch or a repair
    has landed since the last chapter run, so one chapter may be made. `failed_chapters`: how often the model failed to
    make a chapter.
    """

    # Here `pending_notes` is always empty, because `notes` holds the pending notes. The property `compaction` combines
    # both.
    memory: CompactionState = field(default_factory=CompactionState)
    notes: NoteBuffer = field(default_factory=NoteBuffer)
    run: Run | None = None
    failures: int = 0
    model_failures: int = 0
    hold_until: float | None = None
    model_rest_until: float | None = None
    model_well: bool = False
    failed_repairs: Mapping[SegmentId, int] = field(default_factory=dict)
    chapter_allowed: bool = False
    failed_chapters: Mapping[ChapterDue, int] = field(default_factory=dict)
    ending: bool = False
    ended: bool = False

    @classmethod
    def restored(cls, memory: CompactionState, *, live: NoteBuffer, ended: bool) -> SessionState:
        """Return the state of a stored session with no run in flight."""
        notes = NoteBuffer(live=live.live, pending=memory.pending_notes)
        return cls(memory=replace(memory, pending_notes=()), notes=notes, ending=ended, ended=ended)

    @property
    def compaction(self) -> CompactionState:
        """Return the state that is stored across restarts, including the pending notes."""
        return replace(self.memory, pending_notes=self.notes.pending)

    def current_run(self, run_id: RunId) -> Run | None:
        """Return the run in flight if it has this id, otherwise None."""
        return self.run if self.run is not None and self.run.id == run_id else None


def begin_run(state: SessionState, run: Run) -> SessionState:
    """Return the state with `run` in flight."""
    assert state.run is None, "two runs in flight"
    return replace(state, run=run, chapter_allowed=state.chapter_allowed and run.chapter is None)


def await_landing(state: SessionState, run_id: RunId, landing: Landing) -> SessionState:
    """Return the state in which the landing of the run in flight is being written."""
    run = state.current_run(run_id)
    return state if run is None else replace(state, run=replace(run, landing=landing))


def land_run(state: SessionState, run_id: RunId, *, by_model: bool) -> SessionState:
    """Return the state after the result of the run in flight was stored. Cursor, summary, notes and revision change
    together.

    Notes that became pending during the run stay pending. `by_model`: the model made the result, so its failure count
    is reset. Otherwise nothing new is known of it.
    """
    run = state.current_run(run_id)
    if run is None or run.landing is None:
        return state
    return replace(
        state,
        memory=replace(run.landing.state, pending_notes=()),
        notes=state.notes.without_folded(run.note_ids),
        run=None,
        failures=0,
        hold_until=None,
        model_failures=0 if by_model else state.model_failures,
        model_rest_until=None if by_model else state.model_rest_until,
        model_well=by_model or state.model_well,
        chapter_allowed=run.chapter is None,
    )


def fail_run(
    state: SessionState,
    run_id: RunId,
    *,
    model_failures: int,
    hold_until: float | None,
    model_rest_until: float | None,
) -> SessionState:
    """Return the state after the run in flight failed. Cursor, summary and notes are unchanged. `hold_until`,
    `model_rest_until`: see `SessionState`.
    """
    run = state.current_run(run_id)
    if run is None:
        return state
    return replace(
        state,
        run=None,
        failures=state.failures + 1,
        model_failures=model_failures,
        hold_until=hold_until,
        model_rest_until=model_rest_until,
        model_well=False,
    )


def fail_repair(state: SessionState, run_id: RunId, *, counts: bool) -> SessionState:
    """Return the state after a repair failed. `counts`: as one of the attempts after which it is given up.

    New batches are not delayed. The next repair waits until a run with the model succeeds.
    """
    run = state.current_run(run_id)
    if run is None or run.repairs is None:
        return state
    failures = {**state.failed_repairs, run.repairs: state.failed_repairs.get(run.repairs, 0) + counts}
    return replace(state, run=None, model_well=False, failed_repairs=failures)


def fail_chapter(state: SessionState, run_id: RunId, *, by_model: bool) -> SessionState:
    """Return the state after the run of a chapter failed. New batches do not wait. The chapter waits for the next
    landing, and its failure counts only if the model caused it.
    """
    run = state.current_run(run_id)
    if run is None or run.chapter is None:
        return state
    if not by_model:
        return replace(state, run=None)
    failures = {**state.failed_chapters, run.chapter: state.failed_chapters.get(run.chapter, 0) + 1}
    return replace(state, run=None, model_well=False, failed_chapters=failures)


def adopt_stored(
    state: SessionState, stored: CompactionState, *, ended: bool, gone: Collection[NoteId] = ()
) -> SessionState:
    """Return the state with the stored cursor, summary and revision, and without the notes in `gone`.

    If the stored state is older, only the run is dropped, because the cursor never moves back.
    """
    if stored.revision < state.memory.revision or stored.cursor < state.memory.cursor:
        return replace(state, run=None)
    return replace(
        state,
        memory=replace(stored, pending_notes=()),
        notes=state.notes.without(gone),
        run=None,
        ending=state.ending or ended,
        ended=state.ended or ended,
    )


def drop_run(state: SessionState) -> SessionState:
    """Return the state without its run in flight. A late answer of that run is ignored."""
    return replace(state, run=None)


def replace_notes(state: SessionState, notes: NoteBuffer) -> SessionState:
    """Return the state with these notes."""
    return replace(state, notes=notes)


def start_ending(state: SessionState) -> SessionState:
    """Return the state of a session that is ending and starts no new run."""
    return replace(state, ending=True)


def finish_ending(state: SessionState) -> SessionState:
    """Return the state of a session whose end is stored."""
    return replace(state, run=None, ending=True, ended=True)
