"""Which tasks have to live for as long as the process."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from bot.mcp.connection import McpConnection
from bot.mcp.servers import running_servers
from bot.mcp.settings import McpServerSettings, McpSettings
from bot.wiring.pages import PROCESS_TASKS
from tests.bot.mcp.approved import AllApproved
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    import pytest

README = Path(__file__).parents[3] / "bot" / "README.md"


def test_a_task_that_ends_with_the_bot_is_watched() -> None:
    """Otherwise one that has ended before is told nobody: what it does is missing until somebody misses it."""
    ends = r"with the (?:bot\b|process(?:\.|$| \|))"
    rows = re.findall(rf"^\| (`[^|]+) \| [^|]+ \| {ends}", README.read_text(encoding="utf-8"), re.MULTILINE)
    names = [re.findall(r"`([a-z-]+)", row)[0] for row in rows]
    assert "retention" in names
    assert [name for name in names if not name.startswith(PROCESS_TASKS)] == []


async def test_what_a_watched_task_failed_of_is_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """`/healthz` says that it ended, and refers to the log. Whoever owns it sees the failure only when the bot ends."""

    async def fail(_self: object, *_: object) -> None:
        raise ValueError

    monkeypatch.setattr(McpConnection, "run", fail)
    notes = McpServerSettings(name="notes", command="notes")
    servers = running_servers(McpSettings(servers=(notes,)), FakeClock(), AllApproved())
    with capture_logs() as logs:
        async with servers:
            # They fail as they begin.
            for _ in range(5):
                await asyncio.sleep(0)
            failed = [line["task"] for line in logs if line["event"] == "task_failed"]
    assert sorted(set(failed)) == ["mcp-notes"]
