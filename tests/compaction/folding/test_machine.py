"""The fold machine decides without I/O, logs or a clock: trigger, failures, notes, end of session."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from compaction.folding.events import FoldFailed, FoldLanded, FoldSkipped
from compaction.folding.machine import THRESHOLD, FoldingMachine
from compaction.folding.signals import (
    AwaitRun,
    CancelRun,
    CheckRequested,
    DeadlinePassed,
    Effect,
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
from compaction.folding.state import Run, SessionState
from compaction.folding.window import SkipReason
from compaction.model import CompactionState, Mode, NoteId, RunId, Seq
from compaction.notes import PENDING_NOTES_RUN, NoteBuffer
from compaction.settings import CompactionSettings
from tests.compaction.turn_store_contract import note, segment

SETTINGS = CompactionSettings()


def machine(state: SessionState | None = None, *, mode: Mode = Mode.SUMMARY) -> FoldingMachine:
    return FoldingMachine(
        SessionState() if state is None else state,
        mode=mode,
        settings=SETTINGS,
        rng=random.Random(1),
    )


def ask(a_machine: FoldingMachine, total: int, *, now: float = 0.0, stored: int | None = None) -> tuple[Effect, ...]:
    return a_machine.handle(CheckRequested(total, total if stored is None else stored), now)


def started(a_machine: FoldingMachine, total: int, *, now: float = 0.0) -> Run:
    """Request a check and return the run that it started."""
    effect = ask(a_machine, total, now=now)[-1]
    assert isinstance(effect, StartRun)
    return effect.run


def land(a_machine: FoldingMachine, run: Run, *, now: float = 1.0) -> tuple[Effect, ...]:
    """Take a run through all steps until it is stored."""
    made = FoldMade(run.id, segment(run.start, run.end), f"Summary to {run.end}.", at=1000.0 + now)
    (write,) = a_machine.handle(made, now)
    assert isinstance(write, WriteLanding)
    return a_machine.handle(
        LandingWritten(run.id, prompt_tokens=10, completion_tokens=5, by_model=not run.degraded), now
    )


def failure(run: Run, culprit: FailureSource = FailureSource.MODEL, *, retryable: bool = True) -> RunFailed:
    return RunFailed(run.id, culprit, "CompletionError", "overloaded", timeout=False, retryable=retryable, model="m")


def skip(effects: tuple[Effect, ...]) -> FoldSkipped:
    """Return the only event, which must be a skip."""
    (effect,) = effects
    assert isinstance(effect, EmitEvent)
    assert isinstance(effect.event, FoldSkipped)
    return effect.event


def failed(effects: tuple[Effect, ...]) -> FoldFailed:
    """Return the only event, which must be a failure."""
    (effect,) = effects
    assert isinstance(effect, EmitEvent)
    assert isinstance(effect.event, FoldFailed)
    return effect.event


# -- the trigger ---------------------------------------------------------------------------------------------


def test_first_batch_at_61_turns_then_at_71() -> None:
    """The first batch is due at 61 turns and the next one at 71, and nothing is due between them."""
    it = machine()
    assert skip(ask(it, 60)).reason is SkipReason.BELOW_THRESHOLD
    run = started(it, 61)
    assert (run.start, run.end, run.recent_start, run.attempt) == (0, 10, 11, 1)
    land(it, run)
    assert it.state.memory == CompactionState(cursor=Seq(10), revision=1, summary="Summary to 10.", last_at=1001.0)
    assert skip(ask(it, 70)).reason is SkipReason.BELOW_THRESHOLD
    assert started(it, 71).start == 10


def test_only_one_run_is_in_flight() -> None:
    """A check during a run starts nothing and names the run in progress."""
    it = machine()
    run = started(it, 61)
    told = skip(ask(it, 64))
    assert (told.reason, told.run_id) == (SkipReason.ALREADY_IN_FLIGHT, run.id)


def test_a_batch_waits_until_it_is_stored() -> None:
    """Turns that the store does not have yet are not folded."""
    it = machine()
    assert skip(ask(it, 61, stored=9)).reason is SkipReason.NO_ELIGIBLE_BATCH
    assert isinstance(ask(it, 61, stored=10)[-1], StartRun)


def test_off_is_off() -> None:
    """In mode `off` no run starts, not even for notes, at any number of turns."""
    pending = tuple(note(f"n{number}") for number in range(PENDING_NOTES_RUN))
    it = machine(SessionState(notes=NoteBuffer(pending=pending)), mode=Mode.OFF)
    assert skip(ask(it, 5_000)).reason is SkipReason.DISABLED


def test_skip_tells_the_numbers_behind_it() -> None:
    """A skip reports the numbers that explain why no run started."""
    it = machine(SessionState(memory=CompactionState(cursor=Seq(10)), notes=NoteBuffer(pending=(note("a"),))))
    assert skip(ask(it, 65)) == FoldSkipped(
        run_id=None,
        reason=SkipReason.BELOW_THRESHOLD,
        cursor=Seq(10),
        total_turns=65,
        eligible_count=5,
        threshold=THRESHOLD,
        pending_note_count=1,
        repeated=0,
    )


def test_repeated_skips_are_counted_and_told_when_the_reason_changes() -> None:
    """The first skip is reported at once. Further skips with the same reason are counted, and the count is reported
    before the next reason.
    """
    it = machine()
    skip(ask(it, 1))
    assert ask(it, 2) == ask(it, 3) == ()
    repeats, start = ask(it, 61)
    assert isinstance(start, StartRun)
    assert isinstance(repeats, EmitEvent)
    assert isinstance(repeats.event, FoldSkipped)
    assert (repeats.event.repeated, repeats.event.total_turns) == (2, 3)
    skip(ask(it, 62))
    ask(it, 63)
    it.handle(failure(start.run), 0.0)
    told = ask(it, 64)
    assert [
        effect.event.repeated
        for effect in told
        if isinstance(effect, EmitEvent) and isinstance(effect.event, FoldSkipped)
    ] == [1, 0]


# -- failures ------------------------------------------------------------------------------------------------


def test_a_failed_run_changes_nothing_but_the_waiting() -> None:
    """After a failed run the summary, cursor and notes are unchanged, no run is in progress, and the retry waits for a
    pause.
    """
    it = machine(SessionState(notes=NoteBuffer(pending=(note("a"),))))
    before = it.state.compaction
    told = failed(it.handle(failure(started(it, 61)), 4.0))
    assert it.state.compaction == before
    assert it.state.run is None
    assert told.next_retry_s is not None
    assert (told.attempt, told.latency_ms, told.cursor, told.batch_size) == (1, 4_000.0, 0, 10)
    assert skip(ask(it, 61, now=4.0 + told.next_retry_s - 0.01)).reason is SkipReason.BACKING_OFF
    assert started(it, 61, now=4.0 + told.next_retry_s).attempt == 2


def test_pauses_grow_with_jitter_up_to_the_limit() -> None:
    """The full pause doubles with each attempt up to a limit. The actual pause is random, between half of it and all of
    it.
    """
    it = machine()
    now = 0.0
    for attempt in range(1, 40):
        run = started(it, 61, now=now)
        told = failed(it.handle(failure(run, FailureSource.STORE), now))
        full = min(SETTINGS.retry_max_s, SETTINGS.retry_base_s * 2.0 ** (attempt - 1))
        assert told.next_retry_s is not None
        assert full / 2 <= told.next_retry_s <= full
        now += told.next_retry_s


def test_three_failures_of_the_model_bring_in_the_fallback() -> None:
    """After three failures of the model the fourth run uses the fallback and starts at once. Its result lands like any
    other.
    """
    it = machine()
    now = 0.0
    for _ in range(3):
        run = started(it, 61, now=now)
        assert not run.degraded
        told = failed(it.handle(failure(run), now))
        assert told.next_retry_s is not None
        if told.attempt < 3:
            now += told.next_retry_s
    run = started(it, 61, now=now)
    assert run.degraded
    (report,) = land(it, run, now=now)
    assert isinstance(report, EmitEvent)
    assert isinstance(report.event, FoldLanded)
    assert report.event.degraded
    # While the model is not tried, the fallback goes on folding. After that the model is tried once for each batch.
    assert started(it, 71, now=now).degraded


def test_a_rested_model_is_tried_again() -> None:
    """One landing of the model's own ends the outage. One more failure only lengthens the pause in which the model is
    not tried.
    """
    rested = SessionState(model_failures=3, model_rest_until=100.0)
    it = machine(rested)
    run = started(it, 61, now=100.0)
    assert not run.degraded
    told = failed(it.handle(failure(run), 100.0))
    assert it.state.model_failures == 4
    assert it.state.hold_until is None, "the fallback is there, so the batch doesn't wait"
    assert told.next_retry_s is not None
    assert started(it, 61, now=101.0).degraded
    it = machine(rested)
    land(it, started(it, 61, now=100.0))
    assert (it.state.model_failures, it.state.model_rest_until) == (0, None)


def test_a_wrong_key_goes_to_the_fallback_at_once() -> None:
    """An error that does not pass by itself brings in the fallback at once, without three attempts."""
    it = machine()
    told = failed(it.handle(failure(started(it, 61), retryable=False), 0.0))
    assert not told.retryable
    assert started(it, 61, now=0.1).degraded


@pytest.mark.parametrize("culprit", [FailureSource.STORE, FailureSource.FALLBACK])
def test_failures_that_the_fallback_cannot_help_wait(culprit: FailureSource) -> None:
    """Failures of the store, such as a full disk, and of the fallback itself never bring in the fallback, however often
    they happen.
    """
    it = machine()
    now = 0.0
    for _ in range(5):
        run = started(it, 61, now=now)
        assert not run.degraded
        told = failed(it.handle(failure(run, culprit), now))
        assert skip(ask(it, 61, now=now)).reason is SkipReason.BACKING_OFF
        assert told.next_retry_s is not None
        now += told.next_retry_s


# -- answers of other runs -----------------------------------------------------------------------------------


def test_answers_of_another_run_change_nothing() -> None:
    """Late segments, landings and failures of another run are ignored."""
    it = machine()
    run = started(it, 61)
    before = it.state
    other = RunId("other")
    assert it.handle(FoldMade(other, segment(0, 10), "x", 0.0), 1.0) == ()
    assert it.handle(LandingWritten(other, None, None, by_model=True), 1.0) == ()
    assert it.handle(replace(failure(run), run_id=other), 1.0) == ()
    assert it.state == before


def test_written_before_made_changes_nothing() -> None:
    """A landing cannot be confirmed before its segment was made."""
    it = machine()
    run = started(it, 61)
    assert it.handle(LandingWritten(run.id, None, None, by_model=True), 1.0) == ()
    assert it.state.run == run


def test_landing_tells_the_store_what_it_stands_on() -> None:
    """The landing carries the (cursor, revision) it was made on, for compare-and-swap."""
    it = machine(
        SessionState(memory=CompactionState(cursor=Seq(30), revision=7), notes=NoteBuffer(pending=(note("a"),)))
    )
    run = started(it, 95)
    (write,) = it.handle(FoldMade(run.id, segment(30, 40), "New.", at=5.0), 1.0)
    assert isinstance(write, WriteLanding)
    landing = write.landing
    assert (landing.expected_cursor, landing.expected_revision) == (30, 7)
    assert (landing.state.cursor, landing.state.revision, landing.state.summary) == (40, 8, "New.")
    assert landing.folded_note_ids == ("a",)


def test_a_later_state_of_the_store_is_adopted() -> None:
    """Notes and turns that the store has already folded are not folded again. An older state of the store changes
    nothing.
    """
    it = machine(SessionState(notes=NoteBuffer(pending=(note("a"), note("b")))))
    run = started(it, 61)
    it.handle(failure(run, FailureSource.STORE), 0.0)
    stored = CompactionState(Seq(10), 1, "Stored.", 9.0, (note("b"),))
    it.handle(StoreAhead(stored, ended=False, gone=frozenset({NoteId("a")})), 0.0)
    assert it.state.compaction == CompactionState(Seq(10), 1, "Stored.", 9.0, (note("b"),))
    it.handle(StoreAhead(CompactionState(), ended=False), 0.0)
    assert it.state.memory.cursor == 10
    it.handle(StoreAhead(CompactionState(Seq(10), 1, "Stored.", 9.0), ended=True), 0.0)
    assert skip(ask(it, 90)).reason is SkipReason.SESSION_ENDING


# -- notes ---------------------------------------------------------------------------------------------------


def test_notes_are_stored_and_moved() -> None:
    """Each new note is stored, and the thirteenth live note also makes the first one pending. A repeated note does
    nothing.
    """
    it = machine()
    for number in range(12):
        assert it.handle(NoteAdded(note(f"n{number}")), 0.0) == (StoreNote(note(f"n{number}")),)
    assert it.handle(NoteAdded(note("n12")), 0.0) == (StoreNote(note("n12")), StorePendingNotes((NoteId("n0"),)))
    assert it.handle(NoteAdded(note("n12")), 0.0) == ()
    (moved,) = it.handle(NotesRetired(), 0.0)
    assert moved == StorePendingNotes(tuple(NoteId(f"n{number}") for number in range(1, 13)))
    assert it.handle(NotesRetired(), 0.0) == ()


def test_notes_that_come_in_flight_wait() -> None:
    """When a run lands, only the notes that it carried leave the pending ones."""
    it = machine(SessionState(notes=NoteBuffer(pending=(note("a"),), live=(note("b"),))))
    run = started(it, 61)
    assert run.note_ids == ("a",)
    it.handle(NotesRetired(), 0.5)
    land(it, run)
    assert [each.id for each in it.state.notes.pending] == ["b"]


def test_many_pending_notes_make_a_run_of_their_own() -> None:
    """48 notes start a run without a batch that does not move the cursor. 47 notes wait for a batch."""
    pending = tuple(note(f"n{number}") for number in range(PENDING_NOTES_RUN))
    it = machine(SessionState(notes=NoteBuffer(pending=pending[1:])))
    assert skip(ask(it, 5)).reason is SkipReason.BELOW_THRESHOLD
    it = machine(SessionState(notes=NoteBuffer(pending=pending)))
    run = started(it, 5)
    assert (run.start, run.end, len(run.note_ids)) == (0, 0, 48)
    (report,) = land(it, run)
    assert isinstance(report, EmitEvent)
    assert isinstance(report.event, FoldLanded)
    assert (report.event.old_cursor, report.event.new_cursor, report.event.folded_note_count) == (0, 0, 48)
    assert (it.state.memory.cursor, it.state.memory.revision) == (0, 1)


def test_notes_wait_out_a_pause_too() -> None:
    """A retry pause delays a run of notes alone just as it delays a batch."""
    pending = tuple(note(f"n{number}") for number in range(PENDING_NOTES_RUN))
    it = machine(SessionState(notes=NoteBuffer(pending=pending), hold_until=10.0))
    assert skip(ask(it, 5, now=9.0)).reason is SkipReason.BACKING_OFF


# -- the end -------------------------------------------------------------------------------------------------


def test_an_ending_session_starts_nothing() -> None:
    """Once the end of the session has begun, checks start no run."""
    it = machine()
    assert it.handle(EndRequested(), 0.0) == ()
    assert skip(ask(it, 61)).reason is SkipReason.SESSION_ENDING
    it.handle(EndingStored(), 1.0)
    assert it.state.ended


def test_run_in_flight_gets_its_deadline_and_is_then_ignored() -> None:
    """At the end of a session a run gets time until the deadline. A result after the deadline is ignored, and the
    cursor stays.
    """
    it = machine()
    run = started(it, 61)
    assert it.handle(EndRequested(), 0.0) == (AwaitRun(run.id, SETTINGS.ending_deadline_s),)
    drop, report = it.handle(DeadlinePassed(model="m"), 3.0)
    assert drop == CancelRun(run.id)
    told = failed((report,))
    assert (told.timeout, told.retryable, told.next_retry_s) == (True, False, None)
    assert it.handle(FoldMade(run.id, segment(0, 10), "late", 0.0), 4.0) == ()
    assert it.state.memory.cursor == 0


def test_run_that_lands_within_the_deadline_counts() -> None:
    """A run that lands within the deadline at the end of a session is kept."""
    it = machine()
    run = started(it, 61)
    it.handle(EndRequested(), 0.0)
    land(it, run)
    assert it.state.memory.cursor == 10
    assert it.handle(DeadlinePassed(model="m"), 3.0) == ()


def test_failure_while_ending_promises_no_retry() -> None:
    """A failure while the session ends announces no retry."""
    it = machine()
    run = started(it, 61)
    it.handle(EndRequested(), 0.0)
    assert failed(it.handle(failure(run), 1.0)).next_retry_s is None
