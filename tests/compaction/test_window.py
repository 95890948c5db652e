"""Which turns are due for folding: the table of spec 1, and properties for any number of turns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.model import Seq
from compaction.window import TRIGGERS, Batch, Skip, SkipReason, Trigger, Waiting, next_batch, notes_alone, plan

# What waits when each trigger begins a run, and how many turns that folds.
BEGUN: dict[Trigger, tuple[Waiting, int]] = {
    notes_alone: (Waiting(20, 10, 20, pending_notes=48), 0),
}


@pytest.mark.covers("1.6", "1.8", "1.16")
@pytest.mark.parametrize(
    ("total_turns", "cursor", "expected"),
    [
        # Spec 1, 'Exact batch selection': first at 61 turns, then at each ten more.
        (0, 0, Skip(SkipReason.BELOW_THRESHOLD)),
        (50, 0, Skip(SkipReason.BELOW_THRESHOLD)),
        (60, 0, Skip(SkipReason.BELOW_THRESHOLD)),
        (61, 0, Batch(start=0, end=10, recent_start=11, eligible=11)),  # type: ignore[arg-type]
        (61, 10, Skip(SkipReason.BELOW_THRESHOLD)),
        (64, 10, Skip(SkipReason.BELOW_THRESHOLD)),
        (70, 10, Skip(SkipReason.BELOW_THRESHOLD)),
        (71, 10, Batch(start=10, end=20, recent_start=21, eligible=11)),  # type: ignore[arg-type]
        (71, 20, Skip(SkipReason.BELOW_THRESHOLD)),
        (81, 20, Batch(start=20, end=30, recent_start=31, eligible=11)),  # type: ignore[arg-type]
        # 'The recent window is elastic': turns that came during a run are not part of the next batch.
        (64, 0, Batch(start=0, end=10, recent_start=14, eligible=14)),  # type: ignore[arg-type]
        # Far beyond the buffer's 220 turns the rule is the same, because turn numbers are absolute.
        (1000, 930, Batch(start=930, end=940, recent_start=950, eligible=20)),  # type: ignore[arg-type]
        (1000, 940, Skip(SkipReason.BELOW_THRESHOLD)),
        # A backlog is folded in whole batches.
        (500, 0, Batch(start=0, end=10, recent_start=450, eligible=450)),  # type: ignore[arg-type]
    ],
)
def test_trigger_table(total_turns: int, cursor: int, expected: Batch | Skip) -> None:
    """The plan follows every row of the specification's table."""
    assert plan(total_turns, cursor) == expected


@pytest.mark.covers("1.22")
def test_reasons_are_judged_in_their_order() -> None:
    """The reasons are checked in this order: the session is ending, a run is in progress, too few turns, no batch: the
    store does not have it yet.
    """
    assert plan(61, 0, ending=True, in_flight=True) == Skip(SkipReason.SESSION_ENDING)
    assert plan(61, 0, in_flight=True) == Skip(SkipReason.ALREADY_IN_FLIGHT)
    assert plan(1, 0, in_flight=True) == Skip(SkipReason.ALREADY_IN_FLIGHT)
    begins = partial(next_batch, in_flight=False, ending=False, enabled=True, backing_off=False)
    assert begins(Waiting(60, 0, 9, pending_notes=0)) == Skip(SkipReason.BELOW_THRESHOLD)
    assert begins(Waiting(61, 0, 9, pending_notes=0)) == Skip(SkipReason.NO_ELIGIBLE_BATCH)


@pytest.mark.covers("1.1", "1.8")
def test_20_000_plans_are_those_of_the_specification() -> None:
    """As its code says, 'Exact batch selection': the fifty newest turns are in no batch, and a batch has ten."""
    rng = Random(1)
    for _ in range(20_000):
        total = rng.randrange(3_000)
        cursor = rng.randint(max(0, total - 150), total)
        recent_start = max(cursor, total - 50)
        eligible = recent_start - cursor
        is_due = total - cursor > 50 + 10 and eligible >= 10
        batch = Batch(Seq(cursor), Seq(cursor + 10), Seq(recent_start), eligible)
        assert plan(total, cursor) == (batch if is_due else Skip(SkipReason.BELOW_THRESHOLD))


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda trigger: trigger.__name__)
def test_a_trigger_begins_a_run_although_too_few_turns_wait(trigger: Trigger) -> None:
    """No run begins without what waits for it, nor while one is in flight or the session ends."""
    waiting, turns = BEGUN[trigger]
    begins = partial(next_batch, in_flight=False, ending=False, enabled=True, backing_off=False)
    due = begins(waiting)
    assert isinstance(due, Batch)
    assert (due, due.end - due.start) == (trigger(waiting), turns)
    assert begins(replace(waiting, pending_notes=0)) == Skip(SkipReason.BELOW_THRESHOLD)
    for hindered in ("in_flight", "ending", "backing_off"):
        assert isinstance(begins(waiting, **{hindered: True}), Skip)


@given(st.integers(0, 3_000))
def test_draining_ends_within_one_batch_of_the_window(total: int) -> None:
    """Folding batch after batch stops at 51 to 60 unfolded turns, or leaves all turns of a short session unfolded."""
    cursor = 0
    while isinstance(due := plan(total, cursor), Batch):
        cursor = due.end
    assert cursor % 10 == 0
    assert total - cursor <= 50 + 10
    assert cursor == 0 or total - cursor > 50


@pytest.mark.parametrize(("total", "cursor"), [(5, 6), (5, -1), (-1, 0)])
def test_impossible_numbers_are_refused(total: int, cursor: int) -> None:
    """A cursor outside the session is an error and not a skip."""
    with pytest.raises(ValueError, match="cursor"):
        plan(total, cursor)
