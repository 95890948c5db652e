"""A short visit to one MCP server, for `roomtone doctor`: whether it answers, and what it offers."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from bot.clock import SystemClock
from bot.errors import BotError
from bot.mcp.connection import McpConnection, plain

if TYPE_CHECKING:
    from bot.mcp.settings import McpServerSettings

# Starting a program that has to be fetched first is given longer by the bot than a person wants to wait here.
VISIT_TIMEOUT_S = 20.0


class McpError(BotError):
    """A server does not answer. The message is a plain sentence."""


async def offered_tools(settings: McpServerSettings) -> tuple[str, ...]:
    """Return the names of the tools that a server offers. Raises `McpError`."""
    connection = McpConnection(settings, SystemClock())
    try:
        async with asyncio.timeout(VISIT_TIMEOUT_S), connection.open(errors=sys.stderr):
            return tuple(tool.name for tool in connection.tools)
    except Exception as error:
        raise McpError(plain(error)) from error
