"""Which tasks have to live for as long as the process."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import pytest

from bot.remote.link.address import LOOPBACK, RoomsAddress
from bot.remote.link.listener import RemoteRoomListener
from bot.remote.processes.room_processes import RoomProcesses
from bot.wiring.monitoring import PROCESS_TASKS
from tests.bot.remote.peers import until
from tests.fakes.clock import FakeClock

SLEEPS = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.mark.asyncio
async def test_the_tasks_without_which_rooms_find_no_process_are_watched() -> None:
    """One that keeps a process waiting, and one that lets other machines in. What they start may end."""
    processes = RoomProcesses(lambda _: SLEEPS, FakeClock())
    at = RoomsAddress(LOOPBACK, 0)
    async with processes, RemoteRoomListener(processes.on_offer, "3b" * 32, at=at) as listener:
        await until(lambda: processes._pool.spares)
        _, writer = await asyncio.open_connection(LOOPBACK, listener._at.port)
        await until(lambda: any(task.get_name() == "rooms-port-open" for task in asyncio.all_tasks()))
        names = [task.get_name() for task in asyncio.all_tasks()]
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    assert sorted(name for name in names if name.startswith(PROCESS_TASKS)) == ["room-spare", "rooms-port-accept"]
