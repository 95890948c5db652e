"""The rooms of a process with seats: one room after the other, side by side, until the process has had its last one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.errors import SetupError
from bot.health import Health
from bot.remote.room_side.room_host import NOT_WANTED
from bot.remote.room_side.room_runner import RoomRunner
from bot.room.endings import HANDED_OVER
from tests.bot.remote.peers import until
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from bot.remote.room_side.room_host import RoomHost


class Host:
    """A seat whose room begins and ends when the test wants it."""

    def __init__(self) -> None:
        self.begins = asyncio.Event()
        self.ends: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.closed = False

    async def run(self, stop: asyncio.Event, on_room: Callable[[], None]) -> str:
        """Wait for the room, and for its end; a stopped one is handed over."""
        ending: set[asyncio.Future[Any]] = {asyncio.create_task(stop.wait()), self.ends}
        beginning = asyncio.create_task(self.begins.wait())
        await asyncio.wait({*ending, beginning}, return_when=asyncio.FIRST_COMPLETED)
        if not self.begins.is_set():
            return NOT_WANTED
        on_room()
        await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
        return self.ends.result() if self.ends.done() else HANDED_OVER

    async def begin(self, process: Process) -> None:
        """Give it a room."""
        before = process.told.count("room")
        self.begins.set()
        await until(lambda: process.told.count("room") > before)


class Process:
    """A process with seats. `hosts`: all that were opened, without those for an emergency; `told`: what whoever started
    it is told.
    """

    def __init__(self, count: int) -> None:
        self.hosts: list[Host] = []
        self.emergency: list[Host] = []
        self.told: list[str] = []
        self.stop = asyncio.Event()
        self.refuses = False
        self.health = Health(FakeClock())
        self.runner = RoomRunner(
            self._open,
            count,
            health=self.health,
            on_loaded=lambda: self.told.append("loaded"),
            on_room=lambda: self.told.append("room"),
        )

    @asynccontextmanager
    async def _open(self, emergency: bool) -> AsyncIterator[RoomHost]:
        if self.refuses:
            raise SetupError("This process was given up.")
        host = Host()
        (self.emergency if emergency else self.hosts).append(host)
        yield cast("Any", host)
        host.closed = True

    async def running(self, seats: int) -> asyncio.Task[str]:
        """Start it, and wait until it is loaded."""
        task = asyncio.create_task(self.runner.run(self.stop))
        await until(lambda: self.told == ["loaded"])
        assert (len(self.hosts), len(self.emergency)) == (seats, 1)
        return task

    def dismiss(self) -> None:
        """Tell the emergency seat that waits that the process has had its last room."""
        self.emergency[-1].ends.set_result(NOT_WANTED)


@pytest.mark.asyncio
async def test_one_seat_has_one_room() -> None:
    """The process ends with it, and says why the room has ended."""
    process = Process(1)
    running = await process.running(1)
    await process.hosts[0].begin(process)
    process.hosts[0].ends.set_result("left")
    await until(lambda: process.hosts[0].closed)
    process.dismiss()
    assert await running == "left"
    assert (process.told, len(process.hosts)) == (["loaded", "room"], 1)


@pytest.mark.asyncio
async def test_a_seat_is_opened_again_while_another_room_runs() -> None:
    """Each room has a link of its own, which ends with it. After the last room no seat is opened any more."""
    process = Process(2)
    running = await process.running(2)
    first, second = process.hosts
    await first.begin(process)
    await second.begin(process)
    first.ends.set_result("left")
    await until(lambda: len(process.hosts) == 3)
    assert (first.closed, second.closed) == (True, False)
    third = process.hosts[2]
    await third.begin(process)
    second.ends.set_result("crashed")
    await until(lambda: len(process.hosts) == 4)
    process.hosts[3].ends.set_result(NOT_WANTED)
    third.ends.set_result("empty")
    await until(lambda: third.closed)
    process.dismiss()
    assert await running in {"empty", "crashed"}
    assert len(process.hosts) == 4


@pytest.mark.asyncio
async def test_the_emergency_seat_is_opened_again_while_another_room_runs() -> None:
    """It has one room more than the process is for, and then waits for the next one that has lost its process."""
    process = Process(1)
    running = await process.running(1)
    await process.hosts[0].begin(process)
    [first] = process.emergency
    await first.begin(process)
    first.ends.set_result("left")
    await until(lambda: len(process.emergency) == 2)
    assert first.closed
    process.hosts[0].ends.set_result("empty")
    await until(lambda: process.hosts[0].closed)
    process.dismiss()
    assert await running in {"left", "empty"}
    assert len(process.hosts) == 1


@pytest.mark.asyncio
async def test_a_process_that_has_to_end_hands_all_its_rooms_over() -> None:
    """The seats that wait end at once, and none is opened again."""
    process = Process(3)
    running = await process.running(3)
    for host in process.hosts[:2]:
        await host.begin(process)
    process.stop.set()
    assert await running == HANDED_OVER
    assert len(process.hosts) == 3


@pytest.mark.asyncio
async def test_a_broken_process_takes_no_other_room() -> None:
    """A part of it has ended that all rooms need, so no room would be well there."""
    process = Process(2)
    running = await process.running(2)
    for host in process.hosts:
        await host.begin(process)

    async def part() -> None:
        """End, which it should not."""

    ended = asyncio.create_task(part())
    await ended
    process.health.started([ended])
    process.hosts[0].ends.set_result("crashed")
    await until(lambda: process.hosts[0].closed)
    process.hosts[1].ends.set_result("crashed")
    process.dismiss()
    assert await running == "crashed"
    assert len(process.hosts) == 2


@pytest.mark.asyncio
async def test_a_seat_that_is_refused_leaves_the_other_rooms_alone() -> None:
    """At the beginning it is the process's own error."""
    process = Process(2)
    running = await process.running(2)
    for host in process.hosts:
        await host.begin(process)
    process.refuses = True
    process.hosts[0].ends.set_result("left")
    await until(lambda: process.hosts[0].closed)
    assert not running.done()
    process.hosts[1].ends.set_result("empty")
    await until(lambda: process.hosts[1].closed)
    process.dismiss()
    assert await running in {"left", "empty"}
    refused = Process(2)
    refused.refuses = True
    with pytest.raises(SetupError, match="given up"):
        await refused.runner.run(refused.stop)
