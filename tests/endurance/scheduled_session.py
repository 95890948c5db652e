"""One session of random schedules: its process with the folding machine, its model and its store.

`schedules` says what happens to it; this module plays how the machine's signals and effects follow from that, as
`compaction.folding.compactor` sends them and carries them out. `session_rules` and `chapter_rules` say what is always
true.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from compaction.folding.machine import THRESHOLD, FoldingMachine
from compaction.folding.signals import (
    AwaitRun,
    CancelRun,
    CheckRequested,
    DeadlinePassed,
    EmitEvent,
    EndingStored,
    EndRequested,
    FailureSource,
    FoldMade,
    LandingWritten,
    NoteAdded,
    NotesRetired,
    StartRun,
    StoreAhead,
    StoreNote,
    StorePendingNotes,
    WriteLanding,
)
from compaction.folding.state import SessionState
from compaction.folding.window import BATCH_SIZE, RECENT_WINDOW
from compaction.model import Mode
from compaction.notes import PENDING_NOTES_RUN, NoteBuffer
from compaction.settings import CompactionSettings
from tests.compaction.turn_store_contract import note, segment
from tests.endurance.chapter_rules import ChapterRules, check_chapters
from tests.endurance.schedule_model import Mood, failure_of, record_of
from tests.endurance.schedule_store import Stored, Withheld, chapter_of
from tests.endurance.session_rules import RunRules, check_store

if TYPE_CHECKING:
    import random
    from collections import Counter

    from compaction.folding.signals import Effect, Signal
    from compaction.folding.state import Run
    from compaction.model import RunId
    from compaction.ports import Landing

# Runs whose late answers are still tried.
REMEMBERED_RUNS = 8
_TURN_S = 3.0


class ScheduledSession:
    """A session over a store of its own. `batches`: folded before it begins; `with_chapters`: and whether chapters were
    made of them. `counts`: what happens is counted there.
    """

    def __init__(self, rng: random.Random, counts: Counter[str], *, batches: int, with_chapters: bool) -> None:
        self._rng = rng
        self._counts = counts
        self._stored = Stored.written(batches, with_chapters=with_chapters)
        self._first_turns = batches * BATCH_SIZE + (RECENT_WINDOW if batches else 0)
        self._total = self._stored_turns = self._most_turns = self._first_turns
        self._notes = 0
        # Monotonic seconds, and the time of the last record.
        self._now = 0.0
        self._at = self._stored.state.last_at or 0.0
        self._past: list[Run] = []
        self._withheld: Withheld | None = None
        self._has_gaps = False
        self._made: set[str] = {each.id for each in self._stored.chapters}
        self._checked_changes = -1
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
            mode=Mode.SUMMARY,
            settings=CompactionSettings(),
            rng=self._rng,
        )
        self._mode = Mode.SUMMARY
        self._was_idle = False
        self._begun_at = 0
        self.mood = Mood.WELL
        self._writing: tuple[Run, Landing] | None = None
        self._overtaken: RunId | None = None
        self._run_rules = RunRules(self._machine.state.memory.cursor)
        self._chapter_rules = ChapterRules()
        self._view = self._stored.view(self._withheld)

    @property
    def _is_behind(self) -> bool:
        """Return whether the store knows more than the session."""
        return self._stored.is_ahead_of(self._machine.state.memory)

    @property
    def run(self) -> Run | None:
        """Return the run in flight."""
        return self._machine.state.run

    @property
    def new_turns(self) -> int:
        """Return how many turns have been said."""
        return self._total - self._first_turns

    # -- what happens --------------------------------------------------------------------------------------

    def talk(self, count: int, *, stored: bool) -> None:
        """Let people say so many turns. `stored`: whether the store takes them at once."""
        self._total += count
        self._now += count * _TURN_S
        self._most_turns = max(self._most_turns, self._total)
        if stored:
            self.store_turns()

    def store_turns(self) -> None:
        """Store the turns that wait."""
        self._stored_turns = self._total

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds

    def see(self, count: int) -> None:
        """Take so many notes of a shared screen."""
        for _ in range(count):
            self._notes += 1
            self._send(NoteAdded(note(f"n{self._notes}")))

    def retire_notes(self) -> None:
        """End the sharing of the screen."""
        self._send(NotesRetired())

    def set_mode(self, mode: Mode) -> None:
        self._mode = mode
        self._machine.set_mode(mode)

    def check(self) -> None:
        """Ask whether a run is due, as at every context and after every run. One that is due begins."""
        self._was_idle = self._is_idle()
        self._send(CheckRequested(self._total, self._stored_turns, self._view.degraded, self._view.chapter))
        if self._was_idle and self._machine.state.run is None:
            self._chapter_rules.none_begun(self._view)

    def _is_idle(self) -> bool:
        """Return whether nothing is in flight, and nothing is due but perhaps a repair or a chapter."""
        state = self._machine.state
        cursor = state.memory.cursor
        due = self._total - cursor > THRESHOLD and cursor + BATCH_SIZE <= self._stored_turns
        free = state.run is None and not state.ending and self._mode is Mode.SUMMARY
        return free and not due and len(state.notes.pending) < PENDING_NOTES_RUN

    def answer(self, run: Run) -> None:
        """Let the model answer for the run in flight, well or with a failure, or the store that stores its result."""
        if self._writing is not None:
            self._write()
        elif run.id == self._overtaken:
            # What is made of withheld words is not stored.
            self._fail(run, FailureSource.CODE)
        elif self._rng.random() < 0.05:
            self._fail(run, self._rng.choice(list(FailureSource)), retryable=self._rng.random() < 0.7)
        elif not run.degraded and self.mood.refuses(run) and self._rng.random() < 0.9:
            self._fail(run, FailureSource.MODEL, retryable=self._rng.random() < 0.9)
        else:
            self._at += 1.0
            self._send(FoldMade(run.id, record_of(run, at=self._at), f"To {run.end}.", at=self._at))
            if self._rng.random() < 0.7:
                self._write()
        state = self._machine.state
        if state.run is None and not state.ending:
            self.check()

    def _fail(self, run: Run, culprit: FailureSource, *, retryable: bool = True) -> None:
        """Let a run fail. That of a repair or a chapter changes nothing else, and delays no batch."""
        before = self._machine.state
        self._chapter_rules.failed(run, culprit, retryable=retryable)
        self._send(failure_of(run, culprit, retryable=retryable))
        after = self._machine.state
        assert (after.memory, after.notes, after.run) == (before.memory, before.notes, None), "a failure changed more"
        if run.moves_cursor_to is None:
            pauses = (before.failures, before.model_failures, before.hold_until, before.model_rest_until)
            assert (after.failures, after.model_failures, after.hold_until, after.model_rest_until) == pauses

    def late_answer(self) -> None:
        """Let a run that is over, cancelled or of a former process answer. Nothing may change."""
        running = self._machine.state.run
        for run in self._past:
            if running is not None and run.id == running.id:
                continue
            record = segment(run.start, run.end) if run.chapter is None else chapter_of(run.chapter, at=self._at)
            made = FoldMade(run.id, record, "Late.", at=self._now)
            for signal in (
                made,
                LandingWritten(run.id, 1, 1, by_model=True),
                failure_of(run, FailureSource.MODEL, retryable=True),
            ):
                before = self._machine.state
                assert self._machine.handle(signal, self._now) == (), "a late answer has effects"
                assert self._machine.state is before, "a late answer changed the state"
                self._counts["late answers"] += 1

    def forget(self, back: float, notes: int) -> None:
        """Let another process forget the words of a turn, and some notes. The session does not know it yet.

        `back`: which turn, from 0 (the newest) to 1 (the first).
        """
        if self._stored_turns == 0:
            return
        there = [*self._stored.live, *self._stored.pending]
        names = set(self._rng.sample(there, min(len(there), notes)))
        self._at += 1.0
        seq = self._stored_turns - 1 - int(back * (self._stored_turns - 1))
        self._counts["chapters deleted"] += self._stored.forget(seq, names, at=self._at)
        self._counts["forgettings"] += 1

    def refresh(self) -> None:
        """Let the session read what others have changed. A landing that is being written goes first."""
        if self._writing is None and self._is_behind:
            self._adopt()

    def _adopt(self, *, retryable: bool = True) -> None:
        """Go on from the stored state. The run in flight is given up, because the store refuses its result.

        `retryable`: whether it would take the next one.
        """
        run = self._machine.state.run
        if run is not None:
            self._fail(run, FailureSource.STORE, retryable=retryable)
        state, stored = self._machine.state, self._stored
        known = frozenset(each.id for each in (*state.notes.live, *state.notes.pending))
        gone = known - stored.live.keys() - stored.pending.keys()
        self._send(StoreAhead(stored.compaction(), ended=False, gone=gone))
        self._view = stored.view(self._withheld)

    def archive(self) -> None:
        """Archive a segment: the store refuses to make it again."""
        if self._view.degraded:
            self._stored.archived.add(self._rng.choice(self._view.degraded).segment_id)

    def withhold(self) -> None:
        """Let somebody opt out, or in again. A repair or a chapter that this overtakes is not stored."""
        run = self._machine.state.run
        if self._withheld is not None:
            self._withheld = None
        else:
            cursor = self._machine.state.memory.cursor
            until = cursor if run is None else max(run.end, cursor)
            self._withheld = Withheld(self._rng.randint(0, self._total), until)
            self._has_gaps = True
        self._view = replace(self._view, withheld=self._withheld)
        if run is not None and self._writing is None and run.moves_cursor_to in (None, run.start):
            self._overtaken = run.id
        self._counts["opt-outs and opt-ins"] += 1

    def die(self) -> None:
        """Kill the process; what it was writing is stored, or is not. Another one goes on."""
        if self._writing is not None and self._rng.random() < 0.5:
            self._land(self._writing[1])
        self._restart()

    def end(self) -> None:
        """End the session, with or without the answer of the run in flight."""
        self._send(EndRequested())
        run = self._machine.state.run
        if run is not None and self._rng.random() < 0.5:
            self.answer(run)
        if self._writing is not None:
            # However long the store takes: otherwise nobody would know whether it is stored.
            self._write()
        if self._machine.state.run is not None:
            self._send(DeadlinePassed("model"))
        assert self._machine.state.run is None
        self.check()
        assert self._machine.state.run is None, "a run began in a session that ends"
        if self._is_behind:
            self._adopt()
        self._stored.ended = True
        self._send(EndingStored())
        self.late_answer()
        assert self._machine.state.ended

    # -- effects -------------------------------------------------------------------------------------------

    def _send(self, signal: Signal) -> None:
        self._counts[type(signal).__name__] += 1
        for effect in self._machine.handle(signal, self._now):
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case StartRun(run):
                self._begun(run)
            case WriteLanding(run_id, landing):
                current = self._machine.state.current_run(run_id)
                assert current is not None
                assert landing.expected_revision == self._begun_at, "a result lands on what its run has not read"
                self._writing = current, landing
            case StoreNote(taken):
                self._stored.take_note(taken)
            case StorePendingNotes(names):
                self._stored.make_pending(names)
            case AwaitRun(run_id, _) | CancelRun(run_id):
                self._run_rules.waits_for(run_id)
            case EmitEvent(event):
                self._counts[type(event).__name__] += 1
                self._run_rules.told(event)
            case _:
                assert_never(effect)

    def _begun(self, run: Run) -> None:
        state = self._machine.state
        self._run_rules.begun(run, state, total=self._total, stored_turns=self._stored_turns, was_idle=self._was_idle)
        self._chapter_rules.begun(run, self._view)
        self._begun_at = state.memory.revision
        if run.moves_cursor_to is None:
            self._counts["chapters begun" if run.chapter else "repairs begun"] += 1
            self._counts["chapters begun without the model"] += run.chapter is not None and run.degraded
        self._past = [*self._past[1 - REMEMBERED_RUNS :], run]

    def _write(self) -> None:
        """Store the result of the run in flight: nothing is written, or all of it, of which the answer may be lost. The
        store refuses it if somebody else has changed the session.
        """
        assert self._writing is not None
        (run, landing), self._writing = self._writing, None
        fate = self._rng.random()
        if fate < 0.08:
            self._fail(run, FailureSource.STORE)
            return
        was_behind = self._is_behind
        landed = self._land(landing)
        archived = landing.repairs and run.repairs in self._stored.archived
        assert landed is not (was_behind or archived), "the store took what does not fit, or refused what does"
        self._counts["landings refused"] += not landed
        if fate < 0.14:
            self._fail(run, FailureSource.STORE)
            return
        if not landed:
            self._adopt(retryable=was_behind)
            return
        # If nothing of a batch may be told to the model, the rules have made the segment.
        tells = run.chapter is not None or self._withheld is None or self._rng.random() < 0.8
        by_model = tells and not run.degraded
        self._chapter_rules.landed(run, by_model=by_model)
        self._view = self._stored.view(self._withheld)
        self._send(LandingWritten(run.id, 1, 1, by_model=by_model))

    def _land(self, landing: Landing) -> bool:
        """Let the store apply a landing, and return whether it does."""
        landed = self._stored.land(landing)
        if landed and landing.chapter is not None:
            self._counts[f"chapters of level {landing.chapter.level}"] += 1
            self._counts["chapters made anew"] += landing.chapter.id in self._made
            self._made.add(landing.chapter.id)
        self._counts["repairs stored"] += landed and landing.repairs
        return landed

    # -- what is always true -------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Raise AssertionError if something that is always true is not."""
        state, stored = self._machine.state, self._stored
        self._run_rules.check(state, most_turns=self._most_turns)
        check_store(state, stored)
        if stored.changes != self._checked_changes:
            self._checked_changes = stored.changes
            assert stored.state.revision == stored.changes
            check_chapters(stored.view(None), stored.repaired, has_gaps=self._has_gaps)
