"""A machine that runs rooms of a bot elsewhere: one process waits, so many run at most, and rooms leave in turn."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from bot.cluster.worker_folder import OfferedProcesses
from bot.remote.processes.room_machine import RoomMachine
from bot.remote.processes.spare_pool import SPARE_AFTER_S
from tests.bot.remote.peers import is_there, until
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.process

# A process that gets a room with SIGUSR1. It writes into a file what happens to it: number, run, and what.
PROGRAM = """
import os, signal, sys

def note(what):
    with open(sys.argv[1], "a") as file:
        file.write(f"{os.getpid()} {sys.argv[2]} {what}\\n")

def end(*_):
    note("ended")
    raise SystemExit

signal.signal(signal.SIGUSR1, lambda *_: print("has-room", flush=True))
signal.signal(signal.SIGTERM, end)
print("something that it says at length " * 10_000, flush=True)
note("loaded")
print("something that a library says", flush=True)
print("loaded", flush=True)
while True:
    signal.pause()
"""


class Machine:
    """The machine, and what its processes have written."""

    def __init__(self, notes: Path, most: int, waiting: int) -> None:
        self.clock = FakeClock()
        self.stop = asyncio.Event()
        self._notes = notes
        self.told: list[OfferedProcesses] = []
        rooms = RoomMachine(
            lambda run_id: (sys.executable, "-c", PROGRAM, str(notes), run_id),
            self.clock,
            most=most,
            waiting=waiting,
            tell=self._tell,
        )
        self.before_telling: Callable[[], None] = lambda: None
        self.running = asyncio.create_task(rooms.run(self.stop))

    def _tell(self, processes: OfferedProcesses) -> None:
        self.before_telling()
        self.told.append(processes)

    def noted(self, what: str) -> list[int]:
        """Return the processes to which this has happened, in order."""
        if not self._notes.exists():
            return []
        lines = [line.split() for line in self._notes.read_text("utf-8").splitlines()]
        return [int(pid) for pid, _, happened in lines if happened == what]

    async def loaded(self, count: int) -> int:
        """Wait until so many have been loaded, and return the last one."""
        await until(lambda: len(self.noted("loaded")) == count)
        return self.noted("loaded")[-1]

    async def room_begins(self, pid: int) -> None:
        """Let the gateway process give a room to the process that waits; the next one is due after the pause."""
        os.kill(pid, signal.SIGUSR1)
        await until(lambda: self.clock.sleeping)
        self.clock.advance(SPARE_AFTER_S)


@asynccontextmanager
async def opened(folder: Path, *, most: int = 4, waiting: int = 1) -> AsyncIterator[Machine]:
    """Run a machine, and end it."""
    machine = Machine(folder / "notes", most, waiting)
    try:
        yield machine
    finally:
        machine.running.cancel()
        await asyncio.gather(machine.running, return_exceptions=True)


@pytest.mark.asyncio
async def test_one_process_waits_and_the_limit_counts_all(tmp_path: Path) -> None:
    """With two at most, the second is the last, until a room has ended."""
    async with opened(tmp_path, most=2) as machine:
        first = await machine.loaded(1)
        await machine.room_begins(first)
        second = await machine.loaded(2)
        await machine.room_begins(second)
        await until(lambda: not machine.clock.sleeping)
        assert len(machine.noted("loaded")) == 2
        os.kill(first, signal.SIGKILL)
        await machine.loaded(3)
        assert is_there(second)


@pytest.mark.asyncio
async def test_several_processes_wait_for_the_rooms_of_a_lost_machine(tmp_path: Path) -> None:
    """Three are loaded, one after the other. Two get a room at once; two more are loaded later, within the limit."""
    async with opened(tmp_path, most=4, waiting=3) as machine:
        await machine.loaded(3)
        assert OfferedProcesses(0, 1, 1) in machine.told
        assert OfferedProcesses(0, 0, 2) not in machine.told, "two load at once"
        first, second, third = machine.noted("loaded")
        os.kill(first, signal.SIGUSR1)
        os.kill(second, signal.SIGUSR1)
        await until(lambda: machine.told[-1] == OfferedProcesses(2, 1, 0))
        await until(lambda: machine.clock.sleeping == 2)
        machine.clock.advance(SPARE_AFTER_S)
        await machine.loaded(4)
        await until(lambda: machine.told[-1] == OfferedProcesses(2, 2, 0))
        os.kill(first, signal.SIGKILL)
        await machine.loaded(5)
        await until(lambda: machine.told[-1] == OfferedProcesses(1, 3, 0))
        assert is_there(second)
        assert is_there(third)


@pytest.mark.asyncio
async def test_a_machine_whose_disk_is_full_offers_processes_all_the_same(tmp_path: Path) -> None:
    """It says once in the log that nobody can read how many there are, and again only if it could meanwhile."""

    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with capture_logs() as logs:
        async with opened(tmp_path, most=3) as machine:
            machine.before_telling = fail
            for number in range(1, 3):
                await machine.room_begins(await machine.loaded(number))
            await machine.loaded(3)
            machine.before_telling = lambda: None
            os.kill(machine.noted("loaded")[0], signal.SIGUSR1)
            os.kill(machine.noted("loaded")[0], signal.SIGKILL)
            await until(lambda: machine.told)
    told = [line for line in logs if line["event"] == "room_processes_not_told"]
    assert len(told) == 1
    assert "free some space" in told[0]["remedy"]


@pytest.mark.asyncio
async def test_a_machine_that_leaves_ends_the_one_that_waits_and_then_room_after_room(tmp_path: Path) -> None:
    """So no room that is handed over comes back here."""
    async with opened(tmp_path) as machine:
        first = await machine.loaded(1)
        await machine.room_begins(first)
        second = await machine.loaded(2)
        await machine.room_begins(second)
        waiting = await machine.loaded(3)
        machine.stop.set()
        await machine.running
        assert machine.noted("ended") == [waiting, first, second]


@pytest.mark.asyncio
async def test_a_machine_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    """They are killed; the gateway process notices the end of their links."""
    async with opened(tmp_path) as machine:
        pid = await machine.loaded(1)
        assert is_there(pid)
    assert (is_there(pid), machine.noted("ended")) == (False, [])
