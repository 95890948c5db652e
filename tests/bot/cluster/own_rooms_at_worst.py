"""The tests of rooms on three machines that lose all actors, a machine and Ray's head, one after the other, in speech.

`python -m tests.bot.cluster own_rooms_at_worst.py` starts them in a network of their own (`make endurance`).
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import ExitStack

import pytest

from tests.bot.cluster.machines import FIRST_IP
from tests.bot.cluster.rooms_on_machines import (
    ACTOR,
    HEAD,
    OFFER,
    WORKER,
    Cluster,
    cluster,
    everyone_is_heard,
    people_speak,
    until,
)

__all__ = ["cluster"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_rooms_do_not_notice_that_their_actors_are_killed(cluster: Cluster) -> None:
    """Every worker has an actor again, on its machine. The workers' processes are those from before, and so are the
    rooms'.
    """
    before, processes, actors = cluster.placed(), cluster.processes(WORKER), cluster.processes(ACTOR)
    where = {name: worker[2] for name, worker in (await cluster.workers()).items()}
    assert len(processes) == len(actors) == 3
    await everyone_is_heard(cluster.rooms)
    async with people_speak(cluster.rooms):
        for actor in actors:
            os.kill(actor, signal.SIGKILL)
        await until(lambda: len({*cluster.processes(ACTOR)} - {*actors}) == 3, "other actors")
        workers = await cluster.until_workers(3)
    assert {name: worker[2] for name, worker in workers.items()} == where
    assert {*cluster.processes(WORKER)} == {*processes}
    assert cluster.placed() == before


async def test_the_rooms_of_a_lost_machine_go_on_elsewhere(cluster: Cluster) -> None:
    """All processes of a machine end at once. Its rooms go on where a process waits, and Ray moves its workers."""
    machine = cluster.machines[-1]
    lost = cluster.rooms_on(machine)
    assert lost
    async with people_speak([room for room in cluster.rooms if room not in lost]), cluster.moved(lost):
        await asyncio.to_thread(machine.kill)
    await everyone_is_heard(lost)
    workers = await cluster.until_workers(3)
    assert machine.ip not in {worker[2] for worker in workers.values()}
    assert f"{machine.ip}: lost" in await asyncio.to_thread(cluster.first.run, "cluster", "status")


async def test_rooms_go_on_when_the_head_is_lost(cluster: Cluster) -> None:
    """Ray ends on both machines, and `cluster up` says so and ends. All rooms stay where they are, and hear."""
    before, (head,) = cluster.placed(), cluster.first.processes(HEAD)
    first, second, _ = cluster.machines
    assert cluster.rooms_on(second)
    async with people_speak(cluster.rooms):
        os.kill(head, signal.SIGKILL)
        await until(lambda: "The rooms on this machine go on." in first.told, "the end of Ray on the first machine")
        await until(lambda: "The rooms on this machine go on." in second.told, "the end of Ray on the second machine")
    await everyone_is_heard(cluster.rooms)
    assert cluster.placed() == before


async def test_workers_come_back_to_their_processes_after_the_head(cluster: Cluster) -> None:
    """Ray begins anew on both machines, and the operator asks for the workers again. Each comes to the machine where
    its process has lived on, so no room has to move.
    """
    before, processes = cluster.placed(), cluster.processes(WORKER)
    first, second, _ = cluster.machines
    with ExitStack() as stack:
        await asyncio.to_thread(stack.enter_context, first.up("--cpus", "0.5"))
        await asyncio.to_thread(stack.enter_context, second.up("--join", f"{FIRST_IP}:6379"))
        await asyncio.to_thread(first.run, *OFFER, "--workers", "3")
        await cluster.until_workers(3)
        assert {*cluster.processes(WORKER)} == {*processes}
        await everyone_is_heard(cluster.rooms)
        assert cluster.placed() == before
        # Nobody waits for machines that hand rooms over.
        for machine in (first, second):
            machine.kill()
