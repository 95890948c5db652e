"""Chooses the machine for each new room worker. Pure.

Ray could spread the workers itself (its `SPREAD`), but an actor whose process was killed then comes back on any
machine, while the worker's process goes on where it was. So a machine is chosen here, the one with the fewest workers,
and Ray keeps the actor there as long as the machine lives. A worker whose process lives on without Ray, after the loss
of the head, comes back to its own machine: elsewhere it would be another process, and that one would have to hand its
rooms over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.cluster.room_offer import RoomOffer


@dataclass(frozen=True, slots=True)
class FreeMachine:
    """What a machine still has to give, as Ray tells it. `node_id`: Ray's. `workers`: how many room workers it has.
    `left_behind`: the names of those whose processes lived there without Ray when it joined.
    """

    node_id: str
    cpus: float
    gpus: float
    memory_bytes: float
    workers: int = 0
    left_behind: frozenset[str] = frozenset()

    def fits(self, offer: RoomOffer) -> bool:
        """Return whether it has as much free as a worker reserves."""
        return self.cpus >= offer.cpus and self.gpus >= offer.gpus and self.memory_bytes >= offer.memory_bytes

    def with_worker(self, offer: RoomOffer) -> FreeMachine:
        """Return the machine as it is once it has one worker more."""
        return replace(
            self,
            cpus=self.cpus - offer.cpus,
            gpus=self.gpus - offer.gpus,
            memory_bytes=self.memory_bytes - offer.memory_bytes,
            workers=self.workers + 1,
        )


def machines_for(names: Sequence[str], machines: Sequence[FreeMachine], offer: RoomOffer) -> list[str | None]:
    """Return the node ids of the machines for new workers of these names; None where no machine has enough free.

    One that was left behind gets its own machine, before the others. Each of those gets the machine with the fewest
    workers; among equals the one with the most free memory, then the first id.
    """
    free = {machine.node_id: machine for machine in machines}
    chosen: dict[str, str | None] = {}
    for name in sorted(names, key=lambda name: not any(name in machine.left_behind for machine in machines)):
        best = min(
            (machine for machine in free.values() if machine.fits(offer)),
            key=lambda each: (name not in each.left_behind, each.workers, -each.memory_bytes, each.node_id),
            default=None,
        )
        chosen[name] = None
        if best is not None:
            free[best.node_id] = best.with_worker(offer)
            chosen[name] = best.node_id
    return [chosen[name] for name in names]
