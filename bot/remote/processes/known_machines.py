"""The machines that have processes for rooms, how loaded each is, and when it came or was gone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from bot.machine_load import MachineLoad
from bot.remote.processes.placement import THIS_MACHINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bot.clock import Clock
    from bot.remote.processes.placement import ProcessLoad

# Somebody looks once a day; the page says so. A machine that was taken out for good is not listed for longer.
FORGOTTEN_AFTER_S: Final = 24 * 3600.0
# On Kubernetes each new pod is a machine with a name of its own.
MOST_GONE: Final = 100


class KnownMachines:
    """The other machines that have processes, or had some in the last day."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Since when each is linked, and is gone, oldest first; in monotonic seconds.
        self._linked: dict[str, float] = {}
        self._gone: dict[str, float] = {}

    def came(self, machine: str) -> None:
        """Note that a machine has a process. The first one counts."""
        if machine not in self._linked:
            self._linked[machine] = self._clock.monotonic()
            self._gone.pop(machine, None)

    def went(self, machine: str) -> None:
        """Note that a machine has no process any more."""
        if self._linked.pop(machine, None) is not None:
            self._gone[machine] = self._clock.monotonic()
            if len(self._gone) > MOST_GONE:
                del self._gone[next(iter(self._gone))]

    def loads(self, processes: Iterable[ProcessLoad]) -> list[MachineLoad]:
        """Return this machine, then those that are linked, by name, then those that are gone, latest first.

        `processes`: those that there are now.
        """
        now = self._clock.monotonic()
        # What makes monotonic seconds UTC epoch seconds.
        shift_s = self._clock.now() - now
        linked_since = {name: at + shift_s for name, at in sorted(self._linked.items())}
        gone_since = {name: at + shift_s for name, at in self._gone.items() if now - at < FORGOTTEN_AFTER_S}
        gone = [MachineLoad(name, gone_since=at) for name, at in reversed(gone_since.items())]
        return [*machine_loads(processes, {THIS_MACHINE: None, **linked_since}), *gone]


def machine_loads(processes: Iterable[ProcessLoad], linked_since: Mapping[str, float | None]) -> list[MachineLoad]:
    """Return what each machine of `linked_since` has of `processes`, in its order.

    A process that is still being loaded is none that waits; if a room waits for it, it is one with rooms. One that
    ends because it had its last room is neither.
    """
    rooms, with_rooms, waiting = Counter[str](), Counter[str](), Counter[str]()
    for each in processes:
        rooms[each.machine] += each.rooms
        with_rooms[each.machine] += each.rooms > 0
        waiting[each.machine] += each.loaded and not each.rooms and each.free > 0
    return [
        MachineLoad(name, rooms[name], with_rooms[name], waiting[name], linked_since=since)
        for name, since in linked_since.items()
    ]
