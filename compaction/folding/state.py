"""The state of one session's folding, and each way in which it may change: a run begins, lands, fails; the end.

Values and pure functions. An answer that belongs to another run than the one in flight changes nothing, here
and nowhere else. The cursor moves in `land_run` and `adopt_stored` alone.
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
    """One attempt at folding turns `start <= seq < end` and some pending notes; notes alone when start == end.

    `degraded`: the fallback folds it, because the model keeps failing. `repairs`: the segment, folded without the
    model once, that is made again from its turns. `started_at` is in monotonic seconds. `landing` is there once the
    segment is made and waits for the store.
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
    """What a session knows of its folding. Times are monotonic seconds.

    `failures` counts runs that failed since the last landing, `model_failures` those the model is to blame for
    since it last made a segment. No run starts before `hold_until`; before `model_rest_until` the fallback
    stands in for the model. `model_well`: the last run that asked the model landed; only then are segments repaired.
    `failed_repairs` counts, by segment, those that failed.
    """

    # Its `pending_notes` are kept empty; `notes` is the one place for notes, `compaction` puts both together.
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
        """Return the state of a session read back from its store; nothing is in flight then."""
        notes = NoteBuffer(live=live.live, pending=memory.pending_notes)
        return cls(memory=replace(memory, pending_notes=()), notes=notes, ending=ended, ended=ended)

    @property
    def compaction(self) -> CompactionState:
        """Return the part that survives a restart, pending notes included."""
        return replace(self.memory, pending_notes=self.notes.pending)

    def current_run(self, run_id: RunId) -> Run | None:
        """Return the run in flight if it is this one."""
        return self.run if self.run is not None and self.run.id == run_id else None


def begin_run(state: SessionState, run: Run) -> SessionState:
    """Return the state with `run` in flight."""
    assert state.run is None, "two runs in flight"
    return replace(state, run=run)


def await_landing(state: SessionState, run_id: RunId, landing: Landing) -> SessionState:
    """Return the state once the segment of the run in flight is made and goes to the store."""
    run = state.current_run(run_id)
    return state if run is None else replace(state, run=replace(run, landing=landing))


def land_run(state: SessionState, run_id: RunId) -> SessionState:
    """Return the state after the store took the run in flight: cursor, summary, notes and revision move at once.

    Notes that became pending meanwhile stay pending. A model that made its segment is well again.
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
    """Return the state after the run in flight failed: what it would have changed is unchanged."""
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
    """Return the state after a repair failed: new batches are held up by nothing, and the next repair waits for the
    model to make a segment again."""
    run = state.current_run(run_id)
    if run is None or run.repairs is None:
        return state
    failures = {**state.failed_repairs, run.repairs: state.failed_repairs.get(run.repairs, 0) + 1}
    return replace(state, run=None, model_well=False, failed_repairs=failures)


def adopt_stored(
    state: SessionState, stored: CompactionState, *, ended: bool, gone: Collection[NoteId] = ()
) -> SessionState:
    """Return the state after the store was found to know more: its cursor, summary and revision hold, and notes that
    are `gone` there, folded or forgotten, are gone here. The cursor never retreats, so an older record changes
    nothing."""
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
    """Return the state without its run in flight, whose answer will find nobody."""
    return replace(state, run=None)


def replace_notes(state: SessionState, notes: NoteBuffer) -> SessionState:
    """Return the state with other notes."""
    return replace(state, notes=notes)


def start_ending(state: SessionState) -> SessionState:
    """Return the state of a session that starts no more runs."""
    return replace(state, ending=True)


def finish_ending(state: SessionState) -> SessionState:
    """Return the state of a session whose ending is stored."""
    return replace(state, run=None, ending=True, ended=True)
