"""Runs the connections to all MCP servers of the settings and collects their tools."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.background_task import logged_task
from bot.clock import SystemClock
from bot.errors import BotError
from bot.mcp.connection import McpConnection, describe_server_error
from compaction.untrusted_text import visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.brain.tools.tool import RoomTool
    from bot.clock import Clock
    from bot.mcp.settings import McpServerSettings, McpSettings

# Time to ask a server's process to end, then terminate and kill it.
CLOSE_TIMEOUT_S = 10.0
# How long `roomtone doctor` waits. The bot waits longer, because a program may have to be downloaded first.
DOCTOR_TIMEOUT_S = 20.0


class McpError(BotError):
    """A server does not answer. The message is a plain sentence."""


class McpServers:
    """The servers while their connections run. Made by `running_servers`."""

    def __init__(self, connections: tuple[McpConnection, ...]) -> None:
        self.connections = connections

    def tools(self) -> tuple[RoomTool, ...]:
        """Return the tools of all connected servers that can be called now."""
        return tuple(tool for connection in self.connections for tool in connection.tools)


@asynccontextmanager
async def running_servers(settings: McpSettings, clock: Clock) -> AsyncIterator[McpServers]:
    """Connect to the servers in the background for the duration of the block. *Ownership*: owns their tasks."""
    names = [each.name for each in settings.servers]
    connections = tuple(McpConnection(each, clock, servers=names) for each in settings.servers)
    tasks = [logged_task(each.run(), name=f"mcp-{each.settings.name}") for each in connections]
    try:
        yield McpServers(connections)
    finally:
        for connection, task in zip(connections, tasks, strict=True):
            connection.stop(task)
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT_S)


async def list_server_tools(settings: McpServerSettings) -> tuple[str, ...]:
    """Connect to one server briefly and return the names of its tools, made printable. Raises `McpError`."""
    connection = McpConnection(settings, SystemClock())
    try:
        async with asyncio.timeout(DOCTOR_TIMEOUT_S), connection.open(errors=sys.stderr):
            return tuple(visible(tool.name) for tool in connection.listed)
    except Exception as error:
        raise McpError(describe_server_error(error)) from error
