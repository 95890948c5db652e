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
    `doubtful`: its machine has just lost a room, and may be gone.
    """

    machine: str
    rooms: int
    free: int
    loaded: bool = True
    doubtful: bool = False


def process_for_room(processes: Sequence[ProcessLoad]) -> int | None:
    """Return the index of the process that gets the next room; None: one must be started.

    A loaded process comes before one that is being loaded, and then a machine that is surely there before one that is
    doubtful. Then the machine with the fewest rooms is chosen, among equals rather another than the gateway process's
    own, which has more to do. On that machine the fullest process gets the room, so that an empty one goes on waiting
    and can take over all rooms of one that crashes.
    """
    rooms = Counter[str]()
    for each in processes:
        rooms[each.machine] += each.rooms

    def rank(index: int) -> tuple[bool, bool, int, bool, str, int, int]:
        found = processes[index]
        is_own = found.machine == THIS_MACHINE
        return (not found.loaded, found.doubtful, rooms[found.machine], is_own, found.machine, -found.rooms, index)

    return min((index for index, each in enumerate(processes) if each.free > 0), key=rank, default=None)
