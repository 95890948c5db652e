"""Which process gets the next room: a table of the processes in, one of them out. No process is touched here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# The machine of the gateway process, which needs no name.
THIS_MACHINE: Final = ""


@dataclass(frozen=True, slots=True)
class ProcessLoad:
    """One process. `rooms`: how many it has, or will have once it is loaded. `free`: how many more it can take.
    `doubtful`: its machine has just lost a room, and may be gone. `emergency`: how many it can take besides that have
    lost their process.
    """

    machine: str
    rooms: int
    free: int
    loaded: bool = True
    doubtful: bool = False
    emergency: int = 0


def process_for_room(processes: Sequence[ProcessLoad], *, urgent: bool = False) -> int | None:
    """Return the index of the process that gets the next room; None: one must be started.

    A loaded process comes before one that is being loaded, and then a machine that is surely there before one that is
    doubtful. Then the machine with the fewest rooms is chosen, among equals rather another than the gateway process's
    own, which has more to do. On that machine the fullest process gets the room, so that an empty one goes on waiting
    and can take over all rooms of one that crashes.

    `urgent`: the room has lost its process, and people speak. Where it would have to wait for a process that loads, or
    for a doubtful one, it gets the emergency seat of the process with the fewest rooms, on whatever machine that is.
    """
    rooms = Counter[str]()
    for each in processes:
        rooms[each.machine] += each.rooms

    def rank(index: int) -> tuple[bool, bool, int, int, bool, str, int, int]:
        found = processes[index]
        is_own = found.machine == THIS_MACHINE
        crowded = 0 if found.free > 0 else 1 + found.rooms
        where = (rooms[found.machine], is_own, found.machine, -found.rooms, index)
        return (not found.loaded, found.doubtful, crowded, *where)

    def can_take(process: ProcessLoad) -> bool:
        return process.free > 0 or (urgent and process.loaded and process.emergency > 0)

    return min((index for index, each in enumerate(processes) if can_take(each)), key=rank, default=None)
