"""The tests of rooms on three machines: they are spread, and one loses its process while people speak.

`python -m tests.bot.cluster own_rooms.py` starts them in a network of their own (`make endurance`).
"""

from __future__ import annotations

import os
import signal

import pytest

from tests.bot.cluster.rooms_on_machines import (
    OFFERED_ROOM,
    Cluster,
    cluster,
    everyone_is_heard,
    people_speak,
)

__all__ = ["cluster"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_rooms_are_spread_over_the_machines(cluster: Cluster) -> None:
    """Each machine has a worker and a room, and hears."""
    assert {worker[2] for worker in (await cluster.workers()).values()} == {machine.ip for machine in cluster.machines}
    assert [len(cluster.rooms_on(machine)) for machine in cluster.machines] == [1, 1, 1]
    await everyone_is_heard(cluster.rooms)


async def test_a_killed_room_goes_on(cluster: Cluster) -> None:
    """The process of one room is killed. The room goes on in a process that waited; the others notice nothing."""
    machine, before = cluster.another_with_rooms(), cluster.placed()
    (room,) = cluster.rooms_on(machine)
    others = [each for each in cluster.rooms if each is not room]
    (process,) = machine.processes(OFFERED_ROOM, before[room.id].run_id)
    async with people_speak(others), cluster.moved([room]):
        os.kill(process, signal.SIGKILL)
    await everyone_is_heard([room])
    assert all(cluster.placed()[each.id] == before[each.id] for each in others)
