"""Random schedules over the folding machine: a seeded walk that is fast enough for a million steps.

The walk plays everything around the machine: people, notes, the model, the store and its failures, restarts, late
answers and the session's end. After each step the machine's invariants are checked. `tests/compaction` has the same
invariants over whole sessions, with examples that Hypothesis makes small.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never

from compaction.folding.events import FoldFailed, FoldLanded, FoldSkipped
from compaction.folding.machine import FoldingMachine
from compaction.folding.signals import (
    AwaitRun,
    CancelRun,
    CheckRequested,
    DeadlinePassed,
    DegradedSegment,
    EmitEvent,
    EndingStored,
    EndRequested,
    FailureSource,
    FoldMade,
    LandingWritten,
    NoteAdded,
    NotesRetired,
    RunFailed,
    StartRun,
    StoreAhead,
    StoreNote,
    StorePendingNotes,
    WriteLanding,
)
from compaction.folding.state import SessionState
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW
from compaction.model import CompactionState, Mode, NoteId
from compaction.notes import NoteBuffer
from compaction.settings import CompactionSettings
from tests.compaction.turn_store_contract import note, segment

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.report import Json
    from compaction.folding.signals import Effect, Signal
    from compaction.folding.state import Run
    from compaction.model import Note, RunId, Segment
    from compaction.ports import Landing

SEED = 20_261_121
# A session of the walk ends for good after so many turns, so that every session has a beginning and an end.
MOST_TURNS = 600
# Runs whose late answers are still tried.
REMEMBERED_RUNS = 8
_PAUSES_S = (0.0, 0.5, 5.0, 40.0, 700.0)


@dataclass(slots=True)
class Stored:
    """What the store has."""

    state: CompactionState = field(default_factory=CompactionState)
    segments: list[Segment] = field(default_factory=list)
    live: dict[NoteId, Note] = field(default_factory=dict)
    pending: dict[NoteId, Note] = field(default_factory=dict)
    folded: set[NoteId] = field(default_factory=set)
    ended: bool = False

    def land(self, landing: Landing) -> bool:
        """Apply a landing as every store does: once, and only on what it expects."""
        if self.ended or (landing.expected_cursor, landing.expected_revision) != (
            self.state.cursor,
            self.state.revision,
        ):
            return False
        made = landing.segment
        assert made is not None
        if landing.repairs:
            place = next(number for number, each in enumerate(self.segments) if each.id == made.id)
            self.segments[place] = made
        else:
            assert made.start == (self.segments[-1].end if self.segments else 0), "segments have a gap or overlap"
            self.segments.append(made)
        assert not self.folded & set(landing.folded_note_ids), "a note was folded twice"
        for name in landing.folded_note_ids:
            del self.pending[name]
        self.folded |= set(landing.folded_note_ids)
        self.state = replace(landing.state, pending_notes=())
        return True

    def compaction(self) -> CompactionState:
        return replace(self.state, pending_notes=tuple(self.pending.values()))


class Walk:
    """One seeded walk. `counts`: how often each signal was sent, and each event told."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.sessions = 0
        self._now = 0.0
        self._begin_session()

    def _begin_session(self) -> None:
        self.sessions += 1
        self._stored = Stored()
        self._total = self._stored_turns = self._most_turns = self._notes = 0
        self._acknowledged: set[NoteId] = set()
        self._past: list[Run] = []
        self._restart()

    def _restart(self) -> None:
        """Begin again from what is stored, as a new process does."""
        self._total = self._stored_turns
        self._machine = FoldingMachine(
            SessionState.restored(
                self._stored.compaction(),
                live=NoteBuffer(live=tuple(self._stored.live.values())),
                ended=self._stored.ended,
            ),
            session_id="evening",
            mode=Mode.SUMMARY,
            settings=CompactionSettings(),
            rng=self._rng,
        )
        self._highest = self._machine.state.memory.cursor
        self._open_runs: set[RunId] = set()
        self._cancelled: set[RunId] = set()
        self._last_skip: FoldSkipped | None = None

    # -- steps ---------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Do one thing at random, and check the invariants."""
        run = self._machine.state.run
        draw = self._rng.random()
        if draw < 0.34:
            self._talk()
        elif draw < 0.56 and run is not None:
            self._answer(run)
        elif draw < 0.74:
            self._send(self._check_signal())
        elif draw < 0.82:
            self._see()
        elif draw < 0.86:
            self._send(NotesRetired())
        elif draw < 0.90:
            self._late_answer()
        elif draw < 0.94:
            self._now += self._rng.choice(_PAUSES_S)
        elif draw < 0.96:
            self._stored_turns = self._total
        elif draw < 0.97:
            self._machine.set_mode(self._rng.choice((Mode.SUMMARY, Mode.SUMMARY, Mode.OFF)))
        elif draw < 0.985:
            self._restart()
        elif draw < 0.988 or self._total > MOST_TURNS:
            self._end()
        self._invariants()

    def _talk(self) -> None:
        if self._machine.state.ending:
            return
        self._total += self._rng.randint(1, 12)
        self._most_turns = max(self._most_turns, self._total)
        if self._rng.random() < 0.9:
            self._stored_turns = self._total

    def _see(self) -> None:
        if self._machine.state.ending:
            return
        for _ in range(self._rng.choice((1, 1, 1, 5, 48))):
            self._notes += 1
            self._send(NoteAdded(note(f"n{self._notes}")))

    def _check_signal(self) -> CheckRequested:
        degraded = tuple(
            DegradedSegment(each.id, each.start, each.end)
            for each in self._stored.segments
            if each.degraded and each.start < each.end
        )
        return CheckRequested(self._total, self._stored_turns, degraded[:3])

    def _answer(self, run: Run) -> None:
        """Let the model or the store answer for the run in flight: well, or with a failure."""
        if self._rng.random() < 0.25:
            self._send(self._failure(run, self._rng.choice(list(FailureSource))))
            return
        made = segment(run.start, run.end, note_ids=run.note_ids, name=run.repairs or f"{run.id}")
        self._send(FoldMade(run.id, replace(made, degraded=run.degraded), f"To {run.end}.", at=self._now))

    def _late_answer(self) -> None:
        """Let a run that is over, cancelled or of a former process answer. Nothing may change."""
        running = self._machine.state.run
        for run in self._past:
            if running is not None and run.id == running.id:
                continue
            made = FoldMade(run.id, segment(run.start, run.end), "Late.", at=self._now)
            for signal in (made, LandingWritten(run.id, 1, 1), self._failure(run, FailureSource.MODEL)):
                before = self._machine.state
                assert self._machine.handle(signal, self._now) == (), "a late answer has effects"
                assert self._machine.state is before, "a late answer changed the state"
                self.counts["late answers"] += 1

    def _end(self) -> None:
        """End the session, with or without the answer of the run in flight, and begin another one."""
        self._send(EndRequested())
        run = self._machine.state.run
        if run is not None and self._rng.random() < 0.5:
            self._answer(run)
        if self._machine.state.run is not None:
            self._send(DeadlinePassed("model"))
        assert self._machine.state.run is None
        self._send(self._check_signal())
        assert self._machine.state.run is None, "a run began in a session that ends"
        self._stored.ended = True
        self._send(EndingStored())
        self._late_answer()
        assert self._machine.state.ended
        self._begin_session()

    @staticmethod
    def _failure(run: Run, culprit: FailureSource) -> RunFailed:
        retryable = run.attempt % 5 > 0
        return RunFailed(run.id, culprit, "Error", "no", timeout=False, retryable=retryable, model="m")

    # -- effects -------------------------------------------------------------------------------------------

    def _send(self, signal: Signal) -> None:
        self.counts[type(signal).__name__] += 1
        for effect in self._machine.handle(signal, self._now):
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case StartRun(run):
                self._begun(run)
            case WriteLanding(run_id, landing):
                self._write(run_id, landing)
            case StoreNote(taken):
                self._stored.live[taken.id] = taken
                self._acknowledged.add(taken.id)
            case StorePendingNotes(names):
                for name in names:
                    self._stored.pending[name] = self._stored.live.pop(name)
            case CancelRun(run_id):
                self._cancelled.add(run_id)
            case AwaitRun(run_id, _):
                assert run_id in self._open_runs
            case EmitEvent(event):
                self._told(event)
            case _:
                assert_never(effect)

    def _begun(self, run: Run) -> None:
        state = self._machine.state
        assert not self._open_runs, "two runs in flight"
        assert not state.ending
        if run.repairs is None:
            assert run.start == state.memory.cursor
            # A run of notes alone folds no turns.
            assert run.end - run.start in (0, BATCH_SIZE)
            assert run.start == run.end or run.end <= min(self._stored_turns, max(0, self._total - RECENT_WINDOW)), (
                "the window was folded"
            )
        self._last_skip = None
        self._open_runs.add(run.id)
        self._past = [*self._past[1 - REMEMBERED_RUNS :], run]

    def _write(self, run_id: RunId, landing: Landing) -> None:
        """Write a landing: it works, is refused, or works and its answer is lost."""
        run = self._machine.state.current_run(run_id)
        assert run is not None
        fate = self._rng.random()
        if fate < 0.1:
            self._send(self._failure(run, FailureSource.STORE))
            return
        landed = self._stored.land(landing)
        assert landed, "the machine wrote a landing that nothing fits"
        if fate < 0.2:
            # The session reads the store, and finds its own landing there.
            self._open_runs.discard(run_id)
            self._send(StoreAhead(self._stored.compaction(), ended=False, gone=frozenset(landing.folded_note_ids)))
            return
        self._send(LandingWritten(run_id, 1, 1))

    def _told(self, event: FoldSkipped | FoldLanded | FoldFailed) -> None:
        self.counts[type(event).__name__] += 1
        if isinstance(event, FoldSkipped):
            last = self._last_skip
            assert last is None or last.reason != event.reason or event.repeated, "a skip was told twice"
            self._last_skip = event
            return
        self._last_skip = None
        assert event.run_id in self._open_runs, "the end of a run was told twice, or of none"
        self._open_runs.discard(event.run_id)

    # -- what is always true -------------------------------------------------------------------------------

    def _invariants(self) -> None:
        state, stored = self._machine.state, self._stored
        memory = state.memory
        assert memory.cursor >= self._highest, "the cursor went back"
        self._highest = memory.cursor
        assert memory.cursor % BATCH_SIZE == 0
        # A restart loses the turns that were not stored, so the window may be shorter after it than when it was folded.
        assert memory.cursor <= max(0, self._most_turns - RECENT_WINDOW), "the window was folded"
        assert (memory.cursor, memory.revision) == (stored.state.cursor, stored.state.revision)
        assert (stored.segments[-1].end if stored.segments else 0) == memory.cursor
        assert (state.run is None) == (not self._open_runs), "the run in flight is not the one that was begun"
        assert state.run is None or not state.ended
        kept = {each.id for each in (*state.notes.live, *state.notes.pending)}
        assert kept == stored.live.keys() | stored.pending.keys(), "a note is gone, or there twice"
        assert len(kept) + len(stored.folded) == len(self._acknowledged), "a note is gone, or there twice"


def walk(steps: int, *, seed: int = SEED, on_steps: Callable[[int], None] = lambda count: None) -> dict[str, Json]:
    """Walk so many steps and return what happened. Raises AssertionError at the first broken invariant; the message
    has the step, which is the same with the same seed.
    """
    walker = Walk(seed)
    for number in range(steps):
        try:
            walker.step()
        except AssertionError as error:
            raise AssertionError(f"step {number} of seed {seed}: {error}") from error
        if number % 10_000 == 0:
            on_steps(min(10_000, steps - number))
    signals: dict[str, Json] = dict(sorted(walker.counts.items()))
    return {"steps": steps, "seed": seed, "sessions": walker.sessions, "happened": signals}
