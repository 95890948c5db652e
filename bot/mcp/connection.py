"""The connection to one MCP server: made at start, looked after, and mended when it is lost.

A server that is away costs its own tools and nothing else; it is tried again, later and later.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2
import structlog
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from bot.brain.tools.tool import ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any, TextIO

    from mcp.types import CallToolResult

    from bot.clock import Clock
    from bot.mcp.settings import McpServerSettings

log = structlog.get_logger()
# What the library logs of messages that it cannot read is their text. Ours say what happened.
logging.getLogger("mcp").setLevel(logging.CRITICAL)

# A program that is fetched first (uvx, npx) takes its time.
CONNECT_TIMEOUT_S = 30.0
# How often a connected server is asked for its tools again: they may change, and it may have died.
REFRESH_S = 60.0
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
STREAM_TIMEOUT_S = 300.0
# More is no list of tools.
MOST_TOOLS = 200
_TOLD_CHARS = 200
_ADDRESS = re.compile(r"""(https?://)(?:[^\s/@'"]*@)?([^\s/?#'"]+)[^\s'"]*""")


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as its server describes it; nothing of it is believed."""

    name: str
    description: str
    schema: Mapping[str, object]


class McpConnection:
    """One server. `run` is the task that owns the connection, and only it connects and disconnects."""

    def __init__(self, settings: McpServerSettings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self._client: Client | None = None
        # Set while its tools can be called.
        self.connected = asyncio.Event()
        self._tools: tuple[McpTool, ...] = ()
        # Set when a call failed: then the server is looked after at once.
        self._doubted = asyncio.Event()
        self.problem = "it has not been reached yet"

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """Return what it offers; nothing while it is away."""
        return self._tools

    async def run(self) -> None:
        """Stay connected, for ever. *Cancellation* closes the connection and ends the server's process."""
        failures = 0
        while True:
            try:
                async with self.open():
                    failures = 0
                    log.info("mcp_server_connected", server=self.settings.name, tool_count=len(self._tools))
                    await self._look_after()
            except Exception as error:  # noqa: BLE001 - whatever a server or its program does, it costs its tools alone
                failures += 1
                self.problem = describe_error(error)
                if failures == 1:
                    log.warning("mcp_server_lost", server=self.settings.name, problem=self.problem)
            await self._clock.sleep(min(FIRST_RETRY_S * 2 ** (failures - 1), LONGEST_RETRY_S))

    @asynccontextmanager
    async def open(self, *, errors: TextIO | None = None) -> AsyncIterator[None]:
        """Be connected while the block runs; what it offers is known then. Raises whatever keeps it from that.

        `errors`: where a program's own messages go; by default nowhere, for they may hold anything.
        """
        async with (
            self._transport(errors) as transport,
            asyncio.timeout(CONNECT_TIMEOUT_S) as limit,
            Client(transport, read_timeout_seconds=self.settings.timeout_s) as client,
        ):
            self._tools = await _listed(client)
            limit.reschedule(None)
            self._client = client
            self.connected.set()
            try:
                yield
            finally:
                self._client, self._tools = None, ()
                self.connected.clear()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> str:
        """Return what a tool of the server answers. Raises `ToolError`."""
        client = self._client
        if client is None:
            raise ToolError(f"The server {self.settings.name} is away. Go on without it.")
        try:
            result = await client.call_tool(tool, dict(arguments), read_timeout_seconds=self.settings.timeout_s)
        except Exception as error:
            self._doubted.set()
            raise ToolError(f"The server {self.settings.name} failed: {describe_error(error)}") from error
        text = _text_of(result)
        if result.is_error:
            raise ToolError(text)
        return text

    async def _look_after(self) -> None:
        """Ask for its tools now and then, until it does not answer; raises why."""
        client = self._client
        assert client is not None, "it is open"
        while True:
            try:
                async with asyncio.timeout(REFRESH_S):
                    await self._doubted.wait()
            except TimeoutError:
                pass
            self._doubted.clear()
            async with asyncio.timeout(self.settings.timeout_s):
                self._tools = await _listed(client)

    @asynccontextmanager
    async def _transport(self, errors: TextIO | None) -> AsyncIterator[Any]:
        """Lend what carries the messages; `Client` opens it."""
        settings = self.settings
        if settings.url:
            headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
            # Its own limits are those of each call; a stream of events may be silent for long.
            timeout = httpx2.Timeout(settings.timeout_s, read=STREAM_TIMEOUT_S)
            async with httpx2.AsyncClient(headers=headers, timeout=timeout) as http:
                yield streamable_http_client(settings.url, http_client=http)
            return
        parameters = StdioServerParameters(
            command=settings.command,
            args=list(settings.args),
            env={name: value.get_secret_value() for name, value in settings.env.items()},
        )
        with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123, ASYNC230 - opening it never waits
            yield stdio_client(parameters, errlog=errors or nowhere)


async def _listed(client: Client) -> tuple[McpTool, ...]:
    """Return what a server offers, in its order."""
    found: list[McpTool] = []
    cursor: str | None = None
    while len(found) < MOST_TOOLS:
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        found += [McpTool(tool.name, tool.description or "", tool.input_schema) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None or not page.tools:
            break
    return tuple(found[:MOST_TOOLS])


def _text_of(result: CallToolResult) -> str:
    """Return a result as text; what is no text is only named."""
    told: list[str] = []
    for block in result.content:
        text = getattr(block, "text", None)
        told.append(text if isinstance(text, str) else f"[{block.type}, which I can't read]")
    if not told and result.structured_content is not None:
        told.append(json.dumps(result.structured_content, ensure_ascii=False))
    return "\n".join(told) or "It answered nothing."


def describe_error(error: BaseException) -> str:
    """Return what went wrong in one line; of a group of errors the first. Of addresses the host alone is told: hosted
    servers have their keys in the rest."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case TimeoutError():
            sentence = "it did not answer in time"
        case FileNotFoundError():
            sentence = f"there is no program {error.filename!r}"
        case MCPError():
            sentence = error.message
        case _:
            sentence = str(error) or type(error).__name__
    return " ".join(_ADDRESS.sub(r"\1\2", sentence).split())[:_TOLD_CHARS]
