"""Runs the connections to all MCP servers of the settings and collects their tools."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.background_task import logged_task
from bot.clock import Clock, SystemClock
from bot.errors import BotError
from bot.health import FaultKind, HealthFault
from bot.mcp.connection import McpConnection, describe_server_error
from bot.texts.text import counted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.brain.tools.tool import RoomTool
    from bot.mcp.settings import McpServerSettings, McpSettings
    from bot.mcp.tools import Approvals, McpTool

# Time to ask a server's process to end, then terminate and kill it.
CLOSE_TIMEOUT_S = 10.0
# How long `roomtone doctor` waits. The bot waits longer, because a program may have to be downloaded first.
DOCTOR_TIMEOUT_S = 20.0


class McpError(BotError):
    """A server does not answer. The message is a plain sentence."""


@dataclass(frozen=True, slots=True)
class McpServers:
    """The servers while their connections run. Made by `running_servers`."""

    connections: tuple[McpConnection, ...]

    def tools(self, guild_id: int) -> tuple[RoomTool, ...]:
        """Return the tools that can be called now, of the connected servers that are for a Discord server."""
        return tuple(
            tool
            for connection in self.connections
            if guild_id in connection.settings.guilds
            for tool in connection.tools
        )

    def faults(self) -> list[HealthFault]:
        """Return the servers with tools that are off because nobody has approved them."""
        return [
            HealthFault(
                FaultKind.TOOLS,
                counted(
                    len(names),
                    "{count} tool of the MCP server {server} is off, because nobody has approved it.",
                    "{count} tools of the MCP server {server} are off, because nobody has approved them.",
                    server=connection.settings.name,
                ),
                f"`roomtone doctor --approve {connection.settings.name}` shows them and asks you.",
                since=connection.listed_at,
                blocks=False,
            )
            for connection in self.connections
            if (names := connection.unapproved)
        ]


@asynccontextmanager
async def running_servers(settings: McpSettings, clock: Clock, approvals: Approvals) -> AsyncIterator[McpServers]:
    """Connect to the servers in the background for the duration of the block. *Ownership*: owns their tasks."""
    connections = tuple(McpConnection(each, clock, approvals) for each in settings.servers)
    tasks = [logged_task(each.run(), name=f"mcp-{each.settings.name}") for each in connections]
    try:
        yield McpServers(connections)
    finally:
        for connection, task in zip(connections, tasks, strict=True):
            connection.stop(task)
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT_S)


async def list_server_tools(settings: McpServerSettings, approvals: Approvals) -> tuple[McpTool, ...]:
    """Connect to one server briefly and return its tools. Raises `McpError`."""
    connection = McpConnection(settings, SystemClock(), approvals)
    try:
        async with asyncio.timeout(DOCTOR_TIMEOUT_S), connection.open(errors=sys.stderr):
            return connection.listed
    except Exception as error:
        raise McpError(describe_server_error(error)) from error
