"""The state of one session's compaction, and its transitions: a run begins, lands or fails; the session ends.

Values and pure functions. An answer of any run but the one in flight changes nothing; that is checked here. Only
`land_run` and `adopt_stored` move the cursor.
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


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt to fold turns `start <= seq < end` and some pending notes; notes alone if start == end.

    `degraded`: the fallback folds, because the model keeps failing. `repairs`: the degraded segment that is made again.
    `started_at`: monotonic seconds. `landing`: set once the segment is made and waits for the store.
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

    @property
    def batch_size(self) -> int:
        """Return how many turns the run folds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of one session's compaction. Times are monotonic seconds.

    `failures`: failed runs since the last landing. `model_failures`: failures of the model since its last landing. No
    run starts before `hold_until`; before `model_rest_until` the fallback replaces the model. `model_well`: the last
    run with the model landed; segments are repaired only then. `failed_repairs`: failed repairs by segment.
    """

    # Its `pending_notes` stay empty; `notes` has them. `compaction` joins the two.
    memory: CompactionState = field(default_factory=CompactionState)
    notes: NoteBuffer = field(default_factory=NoteBuffer)
    run: Run | None = None
    failures: int = 0
    model_failures: int = 0
    hold_until: float | None = None
    model_rest_until: float | None = None
    model_well: bool = False
    failed_repairs: Mapping[SegmentId, int] = field(default_factory=dict)
    ending: bool = False
    ended: bool = False

    @classmethod
    def restored(cls, memory: CompactionState, *, live: NoteBuffer, ended: bool) -> SessionState:
        """Return the state of a stored session; nothing is in flight."""
        notes = NoteBuffer(live=live.live, pending=memory.pending_notes)
        return cls(memory=replace(memory, pending_notes=()), notes=notes, ending=ended, ended=ended)

    @property
    def compaction(self) -> CompactionState:
        """Return the state that survives a restart, with the pending notes."""
        return replace(self.memory, pending_notes=self.notes.pending)

    def current_run(self, run_id: RunId) -> Run | None:
        """Return the run in flight if it is this one."""
        return self.run if self.run is not None and self.run.id == run_id else None


def begin_run(state: SessionState, run: Run) -> SessionState:
    """Return the state with `run` in flight."""
    assert state.run is None, "two runs in flight"
    return replace(state, run=run)


def await_landing(state: SessionState, run_id: RunId, landing: Landing) -> SessionState:
    """Return the state while the landing of the run in flight is written."""
    run = state.current_run(run_id)
    return state if run is None else replace(state, run=replace(run, landing=landing))


def land_run(state: SessionState, run_id: RunId) -> SessionState:
    """Return the state after the run in flight landed: cursor, summary, notes and revision move at once.

    Notes that became pending meanwhile stay pending. A landing by the model resets its failures.
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
        model_failures=state.model_failures if run.degraded else 0,
        model_rest_until=state.model_rest_until if run.degraded else None,
        model_well=not run.degraded,
    )


def fail_run(
    state: SessionState,
    run_id: RunId,
    *,
    model_failures: int,
    hold_until: float | None,
    model_rest_until: float | None,
) -> SessionState:
    """Return the state after the run in flight failed; cursor, summary and notes are unchanged."""
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
        model_well=state.model_well and run.degraded,
    )


def fail_repair(state: SessionState, run_id: RunId) -> SessionState:
    """Return the state after a repair failed. New batches don't wait; the next repair waits for the model's next
    landing."""
    run = state.current_run(run_id)
    if run is None or run.repairs is None:
        return state
    failures = {**state.failed_repairs, run.repairs: state.failed_repairs.get(run.repairs, 0) + 1}
    return replace(state, run=None, model_well=False, failed_repairs=failures)


def adopt_stored(
    state: SessionState, stored: CompactionState, *, ended: bool, gone: Collection[NoteId] = ()
) -> SessionState:
    """Return the state with the stored cursor, summary and revision, and without the notes that are `gone` there.

    An older stored state changes nothing but the run: the cursor never retreats.
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
    """Return the state without its run in flight; a late answer of that run is ignored."""
    return replace(state, run=None)


def replace_notes(state: SessionState, notes: NoteBuffer) -> SessionState:
    """Return the state with these notes."""
    return replace(state, notes=notes)


def start_ending(state: SessionState) -> SessionState:
    """Return the state of a session that starts no new run."""
    return replace(state, ending=True)


def finish_ending(state: SessionState) -> SessionState:
    """Return the state of a session whose end is stored."""
    return replace(state, run=None, ending=True, ended=True)
