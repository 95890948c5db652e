"""Which tasks have to live for as long as the process."""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.mcp.connection import McpConnection
from bot.mcp.servers import running_servers
from bot.mcp.settings import McpServerSettings, McpSettings
from bot.remote.link.address import LOOPBACK, RoomsAddress
from bot.remote.link.encrypted_port import EncryptedPort
from bot.remote.link.listener import RemoteRoomListener
from bot.remote.processes.room_processes import RoomProcesses
from bot.remote.processes.spare_pool import SparePool
from bot.wiring.monitoring import PROCESS_TASKS
from tests.bot.remote.peers import until
from tests.fakes.clock import FakeClock

README = Path(__file__).parents[3] / "bot" / "README.md"
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


def test_a_task_that_ends_with_the_bot_is_watched() -> None:
    """Otherwise one that has ended before is told nobody: what it does is missing until somebody misses it."""
    ends = r"with the (?:bot\b|process(?:\.|$| \|))"
    rows = re.findall(rf"^\| (`[^|]+) \| [^|]+ \| {ends}", README.read_text(encoding="utf-8"), re.MULTILINE)
    names = [re.findall(r"`([a-z-]+)", row)[0] for row in rows]
    assert "retention" in names
    assert [name for name in names if not name.startswith(PROCESS_TASKS)] == []


@pytest.mark.asyncio
async def test_what_a_watched_task_failed_of_is_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """`/healthz` says that it ended, and refers to the log. Whoever owns it sees the failure only when the bot ends."""

    async def fail(_self: object, *_: object) -> None:
        raise ValueError

    monkeypatch.setattr(SparePool, "keep", fail)
    monkeypatch.setattr(EncryptedPort, "_accept", fail)
    monkeypatch.setattr(McpConnection, "run", fail)
    processes = RoomProcesses(lambda _: SLEEPS, FakeClock())
    listener = RemoteRoomListener(processes.on_offer, "3b" * 32, at=RoomsAddress(LOOPBACK, 0))
    notes = McpServerSettings(name="notes", command="notes", tools=("read",))
    servers = running_servers(McpSettings(servers=(notes,)), FakeClock())
    with capture_logs() as logs:
        async with processes, listener, servers:
            # They fail as they begin.
            for _ in range(5):
                await asyncio.sleep(0)
            failed = [line["task"] for line in logs if line["event"] == "task_failed"]
    assert sorted(set(failed)) == ["mcp-notes", "room-spare", "rooms-port-accept"]
