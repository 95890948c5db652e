"""Each change that a session's fold state allows. Results of other runs change nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.folding.state import (
    Run,
    SessionState,
    adopt_stored,
    await_landing,
    begin_run,
    drop_run,
    fail_run,
    land_run,
)
from compaction.model import CompactionState, NoteId, RunId, Seq
from compaction.notes import NoteBuffer
from tests.compaction.turn_store_contract import landing, note


def run(name: str = "r1", *, note_ids: tuple[str, ...] = (), degraded: bool = False) -> Run:
    return Run(RunId(name), Seq(0), Seq(10), Seq(11), tuple(note(each).id for each in note_ids), 1, degraded, 0.0)


def test_restored_state_has_nothing_in_flight() -> None:
    """A restored state has no run in progress, and its pending and live notes are in their places."""
    memory = CompactionState(Seq(20), 2, "Earlier.", 5.0, (note("a"),))
    state = SessionState.restored(memory, live=NoteBuffer(live=(note("b"),)), ended=False)
    assert state.run is None
    assert state.notes == NoteBuffer(live=(note("b"),), pending=(note("a"),))
    assert state.compaction == memory


def test_landing_moves_cursor_summary_notes_and_revision_at_once() -> None:
    """A landing changes cursor, summary, notes and revision together. A note that the run did not carry
    stays pending.
    """
    state = SessionState(notes=NoteBuffer(pending=(note("a"), note("b"))), failures=2, hold_until=5.0)
    state = await_landing(
        begin_run(state, run(note_ids=("a",))), RunId("r1"), landing(0, 10, revision=0, note_ids=["a"])
    )
    after = land_run(state, RunId("r1"), by_model=True)
    assert (after.memory.cursor, after.memory.revision) == (10, 1)
    assert after.notes.pending == (note("b"),)
    assert (after.run, after.failures, after.hold_until) == (None, 0, None)


def test_degraded_landing_leaves_the_model_resting() -> None:
    """A landing made by the fallback does not end the pause in which the model is not tried."""
    state = SessionState(model_failures=3, model_rest_until=9.0)
    state = await_landing(begin_run(state, run(degraded=True)), RunId("r1"), landing(0, 10, revision=0))
    after = land_run(state, RunId("r1"), by_model=False)
    assert (after.model_failures, after.model_rest_until) == (3, 9.0)


def test_after_a_failure_the_model_is_not_well_before_it_has_made_something() -> None:
    """What the fallback makes meanwhile proves nothing."""
    state = begin_run(SessionState(model_well=True), run())
    state = fail_run(state, RunId("r1"), model_failures=1, hold_until=None, model_rest_until=9.0)
    assert not state.model_well
    for degraded in (True, False):
        state = begin_run(state, run(degraded=degraded))
        state = land_run(
            await_landing(state, RunId("r1"), landing(0, 10, revision=0)), RunId("r1"), by_model=not degraded
        )
        assert state.model_well is not degraded


def test_a_chapter_by_code_leaves_a_model_well() -> None:
    """It is made so after the model failed at that chapter alone."""
    state = await_landing(
        begin_run(SessionState(model_well=True), run(degraded=True)), RunId("r1"), landing(0, 10, revision=0)
    )
    assert land_run(state, RunId("r1"), by_model=False).model_well


@pytest.mark.parametrize("model_well", [False, True])
def test_a_landing_for_which_nobody_was_asked_says_nothing_of_the_model(model_well: bool) -> None:
    """Its failures stay counted, and whether it worked the last time. The failures of runs are over all the same."""
    state = SessionState(
        model_failures=2, model_rest_until=9.0, model_well=model_well, failures=2, hold_until=5.0, chapter_allowed=False
    )
    state = await_landing(begin_run(state, run()), RunId("r1"), landing(0, 10, revision=0))
    after = land_run(state, RunId("r1"), by_model=False)
    assert (after.model_failures, after.model_rest_until, after.model_well) == (2, 9.0, model_well)
    assert (after.failures, after.hold_until, after.chapter_allowed) == (0, None, True)
    asked = land_run(state, RunId("r1"), by_model=True)
    assert (asked.model_failures, asked.model_rest_until, asked.model_well) == (0, None, True)


def test_nothing_lands_without_a_landing() -> None:
    """A run whose segment is not made yet cannot land."""
    state = begin_run(SessionState(), run())
    assert land_run(state, RunId("r1"), by_model=True) == state


def test_other_runs_change_nothing() -> None:
    """Results of another run change nothing, whether they are landings or failures."""
    state = begin_run(SessionState(), run())
    other = RunId("r0")
    assert await_landing(state, other, landing(0, 10, revision=0)) == state
    assert land_run(state, other, by_model=True) == state
    assert fail_run(state, other, model_failures=1, hold_until=1.0, model_rest_until=None) == state


def test_second_run_in_flight_is_a_mistake() -> None:
    """Starting a second run while one is in progress is an assertion error, because the machine must never do it."""
    with pytest.raises(AssertionError, match="two runs"):
        begin_run(begin_run(SessionState(), run()), run("r2"))


@given(have=st.tuples(st.integers(0, 50), st.integers(0, 50)), stored=st.tuples(st.integers(0, 50), st.integers(0, 50)))
def test_adopting_never_moves_the_cursor_back(have: tuple[int, int], stored: tuple[int, int]) -> None:
    """Neither cursor nor revision goes back when a stored state is adopted."""
    state = SessionState(memory=CompactionState(cursor=Seq(have[0]), revision=have[1]))
    after = adopt_stored(state, CompactionState(cursor=Seq(stored[0]), revision=stored[1]), ended=False)
    assert after.memory.cursor >= state.memory.cursor
    assert after.memory.revision >= state.memory.revision


def test_adopting_lets_go_of_the_notes_that_are_gone() -> None:
    """Adopting a stored state removes the notes that are gone, live or pending. Notes that the store cannot know yet
    stay.
    """
    notes = NoteBuffer(live=(note("live"), note("shown")), pending=(note("waits"), note("folded")))
    after = adopt_stored(
        SessionState(notes=notes), CompactionState(revision=1), ended=False, gone={NoteId("shown"), NoteId("folded")}
    )
    assert after.notes == NoteBuffer(live=(note("live"),), pending=(note("waits"),))


def test_dropped_run_is_gone() -> None:
    """Dropping a run changes nothing else."""
    state = SessionState(failures=1)
    assert drop_run(begin_run(state, run())) == state
