"""How many rooms a machine has, and how many processes for them. Metrics and the dashboard show it of each machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# How logs and metrics call the machine of the gateway process, which needs no name.
HERE: Final = "here"


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """One machine. `machine`: its name; empty for the gateway process's own. `rooms`: of this gateway process.
    `with_rooms`, `waiting`: how many processes have rooms, and how many are loaded and have none.

    `linked_since`: when the first process of another machine that is there came, in UTC epoch seconds. `gone_since`:
    when its last process was gone, which happens when it is lost and when it leaves; None while there are processes.
    """

    machine: str
    rooms: int = 0
    with_rooms: int = 0
    waiting: int = 0
    linked_since: float | None = None
    gone_since: float | None = None
