"""Machines that lose several processes at once are told from rooms that lose theirs alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.remote.processes.machine_losses import TOGETHER_S, MachineLosses
from bot.room.endings import ProcessLoss
from tests.fakes.clock import FakeClock


def test_a_room_whose_process_is_lost_alone() -> None:
    """Neither its own process's other links nor other machines tell that its machine has failed."""
    clock, loss = FakeClock(), ProcessLoss()
    losses = MachineLosses(clock.monotonic)
    losses.note("south", "a")
    losses.note("north", "a", loss)
    losses.note("north", "a")
    losses.note("south", "b")
    assert not loss.with_others


def test_rooms_that_are_lost_together() -> None:
    """Each of them knows, the first one a moment later."""
    clock, first, second = FakeClock(), ProcessLoss(), ProcessLoss()
    losses = MachineLosses(clock.monotonic)
    losses.note("north", "a", first)
    assert first == ProcessLoss(with_others=False)
    clock.advance(1.0)
    losses.note("north", "b", second)
    assert first == second == ProcessLoss(with_others=True)


def test_a_process_that_waited_tells_it_too() -> None:
    """It may be missed before the room, or after it."""
    for before in (True, False):
        clock, loss = FakeClock(), ProcessLoss()
        losses = MachineLosses(clock.monotonic)
        if before:
            losses.note("north", "spare")
        losses.note("north", "a", loss)
        if not before:
            losses.note("north", "spare")
        assert loss.with_others


@given(
    st.lists(st.tuples(st.sampled_from("ns"), st.sampled_from("abc"), st.floats(0.0, 2 * TOGETHER_S)), max_size=12),
)
def test_what_counts_is_another_process_of_the_machine_within_some_seconds(lost: list[tuple[str, str, float]]) -> None:
    """Beside a definition that looks at all pairs."""
    clock, at, all_lost = FakeClock(), 0.0, list[tuple[str, str, float, ProcessLoss]]()
    losses = MachineLosses(clock.monotonic)
    for machine, run_id, after_s in lost:
        clock.advance(after_s)
        at = clock.monotonic()
        loss = ProcessLoss()
        losses.note(machine, run_id, loss)
        all_lost.append((machine, run_id, at, loss))
    for machine, run_id, at, loss in all_lost:
        others = [
            abs(other_at - at) <= TOGETHER_S
            for other_machine, other_run, other_at, _ in all_lost
            if other_machine == machine and other_run != run_id
        ]
        assert loss.with_others == any(others)
