"""The tests of rooms on three machines: one loses its process, and all machines leave, while people speak.

`python -m tests.bot.cluster own_rooms.py` starts them in a network of their own (`make endurance`).
"""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from tests.bot.cluster.rooms_on_machines import (
    OFFERED_ROOM,
    WORKER,
    Cluster,
    cluster,
    everyone_is_heard,
    hand_over,
    nothing_is_lost_or_doubled,
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


async def test_a_drained_machine_has_no_rooms(cluster: Cluster) -> None:
    """While people speak, a machine is drained. Its rooms go on elsewhere, and there are as many workers as before.

    Nobody notices when it is switched off.
    """
    machine = cluster.another_with_rooms()
    async with people_speak(cluster.rooms), cluster.moved(cluster.rooms_on(machine)):
        told = await asyncio.to_thread(cluster.first.run, "cluster", "drain", machine.ip)
        assert f"{machine.ip} has no room workers and no recognisers any more" in told
        assert machine.processes(WORKER) == machine.processes(OFFERED_ROOM) == []
    workers = await cluster.until_workers(3)
    assert machine.ip not in {worker[2] for worker in workers.values()}
    before = cluster.placed()
    await asyncio.to_thread(machine.kill)
    await everyone_is_heard(cluster.rooms)
    assert cluster.placed() == before


async def test_machines_that_leave_hand_their_rooms_over(cluster: Cluster) -> None:
    """One after the other, the first one last. All rooms are with the bot then, and nothing was lost or doubled."""
    machines = [machine for machine in reversed(cluster.machines) if machine.processes(WORKER)]
    assert len(machines) == 2
    for machine in machines:
        async with people_speak(cluster.rooms), cluster.moved(cluster.rooms_on(machine)):
            await hand_over(machine)
    await everyone_is_heard(cluster.rooms)
    await nothing_is_lost_or_doubled(cluster)
