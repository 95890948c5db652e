"""The processes of rooms: one waits loaded, a room takes it, and none outlives its use."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from bot.errors import SetupError
from bot.remote.gateway_link import GatewayLink
from bot.remote.hello import RoomIdentity, RoomRefusedError
from bot.remote.listener import RemoteRoomListener
from bot.remote.room_child import ENDED, FROZEN
from bot.remote.room_process import LinkedChild
from bot.remote.room_processes import RoomProcesses
from bot.remote.spare_pool import SPARE_AFTER_S
from tests.bot.remote.peers import TOKEN, until
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.remote.room_process import RoomProcess

pytestmark = pytest.mark.process

SLEEPS = (sys.executable, "-c", "import time; time.sleep(600)")
FAILS = (sys.executable, "-c", "raise SystemExit(1)")


class House:
    """Processes that do nothing; the test opens their links in their place. `started`: the numbers of their runs."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.started: list[str] = []
        self.program = SLEEPS
        self.processes = RoomProcesses(self._command, self.clock)
        self.listener = RemoteRoomListener(self.processes.on_link, TOKEN)
        self.links = AsyncExitStack()

    def _command(self, run_id: str) -> tuple[str, ...]:
        self.started.append(run_id)
        return self.program

    async def load(self, number: int) -> GatewayLink:
        """Let the process of that number be loaded."""
        await until(lambda: len(self.started) > number)
        link = GatewayLink(self.listener.url, TOKEN, RoomIdentity(0, 0, run_id=self.started[number]))
        return await self.links.enter_async_context(link)


@asynccontextmanager
async def opened() -> AsyncIterator[House]:
    """Open a house, and end every process."""
    house = House()
    async with house.listener, house.processes, house.links:
        yield house


def pid(process: RoomProcess) -> int:
    """Return the number of a child."""
    assert isinstance(process, LinkedChild)
    return process.pid


def is_there(process: RoomProcess) -> bool:
    """Return whether the process is there."""
    try:
        os.kill(pid(process), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.asyncio
async def test_a_room_gets_the_process_that_waits_and_the_next_is_loaded_later() -> None:
    """Not at once: loading would take the processor from the room that has just begun."""
    async with opened() as house:
        await house.load(0)
        async with house.processes.taken() as process:
            assert (process.run_id, process.is_alive) == (house.started[0], True)
            await until(lambda: house.clock.sleeping)
            assert len(house.started) == 1
            house.clock.advance(SPARE_AFTER_S)
            await house.load(1)
            await process.kill()
        async with house.processes.taken() as another:
            assert another.run_id == house.started[1]
            await another.kill()
        assert not is_there(process)


@pytest.mark.asyncio
async def test_a_killed_process_and_a_frozen_one_are_told_apart() -> None:
    """The first is reaped; the second has only lost its link, and is killed."""
    async with opened() as house:
        await house.load(0)
        async with house.processes.taken() as process:
            losing = asyncio.create_task(process.lost())
            os.kill(pid(process), signal.SIGKILL)
            assert await losing == ENDED
        house.clock.advance(SPARE_AFTER_S)
        await house.load(1)
        async with house.processes.taken() as frozen:
            os.kill(pid(frozen), signal.SIGSTOP)
            losing = asyncio.create_task(frozen.lost())
            frozen.link.close()
            assert await losing == FROZEN
            await frozen.kill()
        assert not is_there(frozen)


@pytest.mark.asyncio
async def test_a_process_that_does_not_start_is_told_and_tried_again() -> None:
    """Whoever wants a room gets a sentence; the one that waits is tried again after a pause."""
    async with opened() as house:
        house.program = FAILS
        with pytest.raises(SetupError, match="could not be started"):
            async with house.processes.taken():
                pass
        await until(lambda: house.clock.sleeping)


@pytest.mark.asyncio
async def test_nobody_else_is_let_in() -> None:
    """A process that this bot did not start is refused, even with the token."""
    async with opened() as house:
        with pytest.raises(RoomRefusedError, match="not started by this bot"):
            async with GatewayLink(house.listener.url, TOKEN, RoomIdentity(0, 0, run_id="another")):
                pass


@pytest.mark.asyncio
async def test_no_process_outlives_the_bot() -> None:
    """The one that waits ends too."""
    async with opened() as house:
        await house.load(0)
        async with house.processes.taken() as process:
            assert is_there(process)
            await process.kill()
    assert not is_there(process)
