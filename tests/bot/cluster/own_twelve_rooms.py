"""The tests of twelve rooms on three machines, which share processes: one loses a process, the bot and a machine, while
people speak.

`python -m tests.bot.cluster own_twelve_rooms.py` starts them in a network of their own (`make endurance`).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.bot.bot_process import voice_session
from tests.bot.cluster.rooms_on_machines import (
    BESIDE_BOT,
    ROOM,
    Cluster,
    cluster_of,
    everyone_is_heard,
    nothing_is_lost_or_doubled,
    people_speak,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio(loop_scope="module")

# The next room goes to the machine with the fewest: three workers and the bot itself have three each. So a process is
# full, and a room that has lost its own gets one that waits.
ROOMS, ROOMS_EACH = 12, 3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory, whisper_model_dir: Path) -> AsyncIterator[Cluster]:
    """Yield three machines of a cluster with three workers, and twelve rooms, all of which hear."""
    async with cluster_of(tmp_path_factory, whisper_model_dir, rooms=ROOMS, rooms_each=ROOMS_EACH) as made:
        yield made


async def test_rooms_are_spread_over_the_machines(cluster: Cluster) -> None:
    """Each worker and the bot itself have a process with three rooms, and hear."""
    assert {worker[2] for worker in (await cluster.workers()).values()} == {machine.ip for machine in cluster.machines}
    placed = cluster.placed().values()
    assert Counter(each.machine for each in placed) == dict.fromkeys(
        (BESIDE_BOT, "machine1", "machine2", "machine3"), 3
    )
    assert set(Counter(each.run_id for each in placed).values()) == {3}
    await everyone_is_heard(cluster.rooms)


async def test_the_rooms_of_a_killed_process_go_on(cluster: Cluster) -> None:
    """The process of three rooms is killed. They go on in processes that waited; the others notice nothing."""
    await cluster.until_workers(3, waiting=1)
    lost, before = cluster.rooms_on(cluster.another_with_rooms()), cluster.placed()
    others = [room for room in cluster.rooms if room not in lost]
    waited = {*cluster.processes(ROOM)} - {*cluster.processes_of({each.run_id for each in before.values()})}
    (process,) = cluster.processes_of({before[room.id].run_id for room in lost})
    async with people_speak(others), cluster.moved(lost):
        os.kill(process, signal.SIGKILL)
    await everyone_is_heard(lost)
    after = cluster.placed()
    assert all(after[room.id] == before[room.id] for room in others)
    now = {*cluster.processes_of({after[room.id].run_id for room in lost})}
    assert now
    assert now <= waited


async def test_no_room_notices_that_the_bot_is_killed(cluster: Cluster) -> None:
    """The bot's process is killed and started again. Each room stays in its process, and what is said meanwhile is
    stored, once.
    """
    before, opened = cluster.placed(), cluster.opened()
    sessions = {room.id: voice_session(room.local) for room in cluster.rooms}
    async with people_speak(cluster.rooms):
        await cluster.bot.killed()
        cluster.bot = await cluster.start_bot()
    for room in cluster.rooms:
        await room.renewed(sessions[room.id])
    await everyone_is_heard(cluster.rooms)
    assert cluster.placed() == before
    assert cluster.opened() == opened


async def test_the_rooms_of_a_lost_machine_go_on_elsewhere(cluster: Cluster) -> None:
    """All processes of a machine end at once. Its rooms go on in processes of the others, whose rooms stay where they
    are, and Ray moves its worker.
    """
    await cluster.until_workers(3, waiting=1)
    machine, before = cluster.another_with_rooms(), cluster.placed()
    lost = cluster.rooms_on(machine)
    others = [room for room in cluster.rooms if room not in lost]
    async with people_speak(others), cluster.moved(lost):
        await asyncio.to_thread(machine.kill)
    await everyone_is_heard(lost)
    assert cluster.rooms_on(machine) == []
    assert all(cluster.placed()[room.id] == before[room.id] for room in others)
    workers = await cluster.until_workers(3)
    assert machine.ip not in {worker[2] for worker in workers.values()}


async def test_nothing_that_was_said_is_lost_or_doubled(cluster: Cluster) -> None:
    """After all that, each server has one session, with every number of a turn once, and each sentence once."""
    await everyone_is_heard(cluster.rooms)
    await nothing_is_lost_or_doubled(cluster)
