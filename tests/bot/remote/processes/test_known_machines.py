"""How loaded each machine is, and which are gone: cases as an operator would expect them."""

from __future__ import annotations

import pytest

from bot.machine_load import MachineLoad
from bot.remote.processes.known_machines import FORGOTTEN_AFTER_S, MOST_GONE, KnownMachines, machine_loads
from bot.remote.processes.placement import THIS_MACHINE, ProcessLoad
from tests.fakes.clock import FakeClock

NORTH, SOUTH = "north", "south"


@pytest.mark.parametrize(
    ("processes", "figures"),
    [
        ([], (0, 0, 0)),
        ([ProcessLoad(NORTH, 0, 1)], (0, 0, 1)),
        ([ProcessLoad(NORTH, 1, 0), ProcessLoad(NORTH, 0, 1)], (1, 1, 1)),
        # One with a free seat has rooms, and is none that waits.
        ([ProcessLoad(NORTH, 2, 2), ProcessLoad(NORTH, 3, 1)], (5, 2, 0)),
        ([ProcessLoad(NORTH, 0, 4), ProcessLoad(NORTH, 0, 4)], (0, 0, 2)),
        # Loading: for nobody yet, and for a room.
        ([ProcessLoad(NORTH, 0, 4, loaded=False)], (0, 0, 0)),
        ([ProcessLoad(NORTH, 1, 3, loaded=False)], (1, 1, 0)),
        # It had its last room, or has lost its links.
        ([ProcessLoad(NORTH, 0, 0)], (0, 0, 0)),
        # Only an emergency seat is free.
        ([ProcessLoad(NORTH, 0, 0, emergency=1)], (0, 0, 0)),
        ([ProcessLoad(SOUTH, 1, 0), ProcessLoad(THIS_MACHINE, 0, 1)], (0, 0, 0)),
        ([ProcessLoad(NORTH, 0, 1, doubtful=True)], (0, 0, 1)),
    ],
)
def test_processes_are_counted_by_whether_they_have_rooms_or_wait(
    processes: list[ProcessLoad], figures: tuple[int, int, int]
) -> None:
    """The figures of one machine: rooms, processes with rooms, processes that wait."""
    (load,) = machine_loads(processes, {NORTH: 5.0})
    assert load == MachineLoad(NORTH, *figures, linked_since=5.0)


def test_a_machine_that_is_gone_is_listed_since_when() -> None:
    """The gateway process's own comes first, then those that are linked, by name, then those that are gone, the latest
    first. One that comes back is linked since then.
    """
    clock = FakeClock(1_000.0)
    machines = KnownMachines(clock)
    for name in (SOUTH, NORTH, "west", "east"):
        machines.came(name)
        clock.advance(10)
    machines.came(SOUTH)
    for name in (NORTH, "west", "never-there"):
        machines.went(name)
        clock.advance(10)
    shown = machines.loads([ProcessLoad(SOUTH, 1, 0), ProcessLoad(THIS_MACHINE, 0, 1)])
    assert shown == [
        MachineLoad(THIS_MACHINE, waiting=1),
        MachineLoad("east", linked_since=1_030.0),
        MachineLoad(SOUTH, rooms=1, with_rooms=1, linked_since=1_000.0),
        MachineLoad("west", gone_since=1_050.0),
        MachineLoad(NORTH, gone_since=1_040.0),
    ]
    machines.came(NORTH)
    assert MachineLoad(NORTH, linked_since=1_070.0) in machines.loads([])
    clock.advance(FORGOTTEN_AFTER_S)
    assert [each.machine for each in machines.loads([])] == [THIS_MACHINE, "east", NORTH, SOUTH]


def test_few_machines_that_are_gone_are_remembered() -> None:
    """The latest ones, however many names there were."""
    machines = KnownMachines(FakeClock())
    for number in range(2 * MOST_GONE):
        machines.came(f"pod-{number}")
        machines.went(f"pod-{number}")
    assert [each.machine for each in machines.loads([])][1:] == [
        f"pod-{number}" for number in range(2 * MOST_GONE - 1, MOST_GONE - 1, -1)
    ]
