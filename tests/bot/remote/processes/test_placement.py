"""Which process gets the next room: cases as an operator would expect them, and what holds for all."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.remote.processes.placement import THIS_MACHINE, ProcessLoad, process_for_room

if TYPE_CHECKING:
    from random import Random

NORTH, SOUTH = "north", "south"


def _load(
    machine: str, rooms: int, free: int, *, loaded: bool = True, doubtful: bool = False, emergency: int = 0
) -> ProcessLoad:
    return ProcessLoad(machine, rooms, free, loaded=loaded, doubtful=doubtful, emergency=emergency)


@pytest.mark.parametrize(
    ("processes", "chosen"),
    [
        ([], None),
        # One room for each process.
        ([_load(NORTH, 0, 1)], 0),
        ([_load(SOUTH, 0, 1), _load(NORTH, 0, 1)], 1),
        ([_load(NORTH, 1, 0), _load(NORTH, 0, 1), _load(SOUTH, 0, 1)], 2),
        ([_load(THIS_MACHINE, 1, 0), _load(THIS_MACHINE, 0, 1)], 1),
        ([_load(THIS_MACHINE, 0, 1), _load(NORTH, 0, 1)], 1),
        ([_load(THIS_MACHINE, 1, 0), _load(THIS_MACHINE, 0, 1), _load(NORTH, 1, 0), _load(NORTH, 0, 1)], 3),
        ([_load(THIS_MACHINE, 0, 1), _load(NORTH, 1, 0), _load(NORTH, 0, 1)], 0),
        ([_load(NORTH, 1, 0), _load(SOUTH, 1, 0)], None),
        # Several: the one that waits stays empty as long as another has a seat.
        ([_load(NORTH, 0, 4), _load(NORTH, 1, 3)], 1),
        ([_load(NORTH, 1, 3), _load(NORTH, 3, 1), _load(NORTH, 2, 2)], 1),
        ([_load(NORTH, 4, 0), _load(NORTH, 0, 4)], 1),
        ([_load(NORTH, 2, 2), _load(NORTH, 2, 2)], 0),
        # The machine comes before the process.
        ([_load(NORTH, 3, 1), _load(SOUTH, 0, 4)], 1),
        ([_load(NORTH, 4, 0), _load(NORTH, 0, 4), _load(SOUTH, 3, 1)], 2),
        ([_load(THIS_MACHINE, 2, 2), _load(NORTH, 2, 2)], 1),
        ([_load(THIS_MACHINE, 1, 3), _load(NORTH, 2, 2)], 0),
        # Nobody waits for a process that is loading while another one is loaded.
        ([_load(THIS_MACHINE, 0, 4, loaded=False), _load(NORTH, 8, 1)], 1),
        ([_load(THIS_MACHINE, 1, 3, loaded=False)], 0),
        ([_load(THIS_MACHINE, 4, 0, loaded=False), _load(THIS_MACHINE, 1, 3, loaded=False)], 1),
        # A machine that has just lost a room comes after all others, and before waiting for a process.
        ([_load(NORTH, 0, 4, doubtful=True), _load(SOUTH, 3, 1)], 1),
        ([_load(NORTH, 0, 4, doubtful=True), _load(THIS_MACHINE, 9, 1)], 1),
        ([_load(NORTH, 0, 4, doubtful=True), _load(SOUTH, 4, 0)], 0),
        ([_load(NORTH, 0, 4, doubtful=True), _load(THIS_MACHINE, 0, 4, loaded=False)], 0),
        ([_load(NORTH, 0, 4, doubtful=True), _load(NORTH, 1, 3, doubtful=True)], 1),
    ],
)
def test_a_room_gets_the_seat_that_an_operator_expects(processes: list[ProcessLoad], chosen: int | None) -> None:
    """The emptiest machine, and there the fullest process."""
    assert process_for_room(processes) == chosen


@pytest.mark.parametrize(
    ("processes", "chosen"),
    [
        # A process that waits, on any machine that is surely there.
        ([_load(NORTH, 1, 0, emergency=1), _load(SOUTH, 0, 1, emergency=1)], 1),
        ([_load(NORTH, 1, 0, emergency=1), _load(THIS_MACHINE, 0, 1)], 1),
        # None waits: beside the fewest other rooms.
        ([_load(NORTH, 1, 0, emergency=1)], 0),
        ([_load(NORTH, 2, 0), _load(SOUTH, 1, 0, emergency=1)], 1),
        ([_load(NORTH, 4, 0, emergency=1), _load(SOUTH, 1, 0, emergency=1)], 1),
        ([_load(NORTH, 1, 0, emergency=1), _load(NORTH, 4, 0), _load(SOUTH, 2, 0, emergency=1)], 0),
        ([_load(THIS_MACHINE, 0, 1, loaded=False), _load(NORTH, 1, 0, emergency=1)], 1),
        ([_load(NORTH, 0, 1, doubtful=True), _load(SOUTH, 1, 0, emergency=1)], 1),
        # Nor that.
        ([_load(THIS_MACHINE, 0, 1, loaded=False), _load(NORTH, 1, 0)], 0),
        ([_load(NORTH, 0, 1, doubtful=True), _load(SOUTH, 1, 0)], 0),
        ([_load(NORTH, 1, 0)], None),
        ([_load(NORTH, 1, 0, loaded=False, emergency=1)], None),
    ],
)
def test_a_room_that_has_lost_its_process_need_not_wait_for_another(
    processes: list[ProcessLoad], chosen: int | None
) -> None:
    """Loading takes seconds, in which nobody is heard. A room that begins waits for them."""
    assert process_for_room(processes, urgent=True) == chosen


LOADS = st.lists(
    st.builds(
        ProcessLoad,
        machine=st.sampled_from([THIS_MACHINE, NORTH, SOUTH]),
        rooms=st.integers(0, 4),
        free=st.integers(0, 4),
        loaded=st.booleans(),
        doubtful=st.booleans(),
        emergency=st.integers(0, 1),
    ),
    max_size=8,
)


@given(LOADS)
def test_a_room_is_placed_whenever_there_is_a_seat_and_nowhere_else(processes: list[ProcessLoad]) -> None:
    """No process gets more rooms than it can take."""
    chosen = process_for_room(processes)
    if chosen is None:
        assert not any(each.free for each in processes)
    else:
        assert processes[chosen].free > 0


@given(LOADS)
def test_no_other_loaded_machine_with_a_seat_has_fewer_rooms(processes: list[ProcessLoad]) -> None:
    """Rooms of full processes and of those that are loading count too. A doubtful machine is chosen last."""
    chosen = process_for_room(processes)
    if chosen is None or not processes[chosen].loaded:
        assert not any(each.loaded and each.free for each in processes)
        return
    rooms = Counter[str]()
    for each in processes:
        rooms[each.machine] += each.rooms
    found, seats = processes[chosen], [each for each in processes if each.loaded and each.free]
    assert found.doubtful == all(each.doubtful for each in seats)
    others = [each for each in seats if each.doubtful == found.doubtful]
    assert all(rooms[found.machine] <= rooms[each.machine] for each in others)


@given(LOADS, st.randoms(use_true_random=False))
def test_the_order_of_the_processes_does_not_matter_but_among_equals(
    processes: list[ProcessLoad], random: Random
) -> None:
    """The process that is chosen has the same machine and as many rooms in any order."""
    shuffled = list(processes)
    random.shuffle(shuffled)
    chosen, again = process_for_room(processes), process_for_room(shuffled)
    found = None if chosen is None else replace(processes[chosen], free=0, emergency=0)
    assert found == (None if again is None else replace(shuffled[again], free=0, emergency=0))


@given(LOADS)
@example([ProcessLoad(NORTH, 0, 0, emergency=1), ProcessLoad(NORTH, 0, 1)])
def test_a_room_that_has_lost_its_process_is_placed_as_any_other_where_a_loaded_one_waits(
    processes: list[ProcessLoad],
) -> None:
    """The emergency seats count only where no process waits on a machine that is surely there."""
    chosen = process_for_room(processes)
    if chosen is not None and processes[chosen].loaded and not processes[chosen].doubtful:
        assert process_for_room(processes, urgent=True) == chosen


@given(st.integers(1, 5), st.integers(0, 40))
def test_rooms_that_come_one_by_one_fill_processes(each: int, rooms: int) -> None:
    """With one machine there are as few processes as can hold the rooms."""
    counts: list[int] = []
    for _ in range(rooms):
        chosen = process_for_room([ProcessLoad(NORTH, count, each - count) for count in counts])
        if chosen is None:
            counts.append(1)
        else:
            counts[chosen] += 1
    assert len(counts) == -(-rooms // each)
    assert all(count <= each for count in counts)
