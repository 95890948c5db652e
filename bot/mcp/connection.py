"""The connection to one MCP server: opened at start, checked regularly, and reopened when it is lost.

While a server is unreachable, only its tools are missing. The connection is retried at growing intervals.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

import anyio
import httpx2
import structlog
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    Tool,
)

from bot.brain.tools.tool import OutcomeUnknownError, RoomTool, ToolError
from bot.errors import first_cause
from bot.mcp import message_limit
from bot.mcp.message_limit import PROGRAM_LIMIT, MessageLimit, ServerDroppedError, bounded
from bot.mcp.tools import CALL_TIMEOUT_S, Approvals, McpTool, adapt_tools, digest, used_tools
from bot.texts.text import for_people, sentence_of
from compaction.untrusted_text import visible
from voice.cancellation import is_being_cancelled
from voice.endpoint_settings import to_connect
from voice.plain_http import open_http
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from bot.clock import Clock
    from bot.mcp.settings import McpServerSettings

log = structlog.get_logger()
# The library logs the text of messages that it can't parse, which may quote people, as often as a server sends them.
# Its session logs under a name of its own.
for _name in ("mcp", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)

# Programs that must be downloaded first (uvx, npx) start slowly.
CONNECT_TIMEOUT_S = 30.0
# How often the tools are listed again: they may change, and the server may have died.
REFRESH_S = 60.0
# How long a server may take to take a request, and to list its tools.
CHECK_TIMEOUT_S = 10.0
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
# After a connection that has lasted this long the intervals begin anew: a server may answer and die, again and again.
STEADY_S = 60.0
# Longer than a call (CALL_TIMEOUT_S).
STREAM_TIMEOUT_S = 360.0
# Tools beyond this number are ignored.
MOST_TOOLS = 200
_ERROR_CHARS = 200
# The errors of a call by which nothing was begun. The library makes others itself, of anything that is no answer: of
# 202 Accepted, of a proxy's 504, of half an answer.
_NOT_BEGUN = frozenset({INVALID_PARAMS, METHOD_NOT_FOUND})
_ADDRESS = re.compile(r"""(https?://)(?:[^\s/@'"]*@)?([^\s/?#'"]+)[^\s'"]*""")


class McpConnection:
    """One server. Only its task `run` connects and disconnects; `stop` ends it. `approvals`: which tools the operator
    has approved.

    `listed`: the tools as the server describes them; `tools`: those that may be called, as ours. Both are empty while
    it is unreachable.
    """

    def __init__(self, settings: McpServerSettings, clock: Clock, approvals: Approvals) -> None:
        self.settings = settings
        self._approvals = approvals
        # The digests of the approved tools, as they were read last.
        self._approved: frozenset[str] = frozenset()
        self._clock = clock
        self._client: Client | None = None
        # Set while the tools can be called.
        self.connected = asyncio.Event()
        self.listed: tuple[McpTool, ...] = ()
        self.tools: tuple[RoomTool, ...] = ()
        # When the list or what is approved of it changed last, monotonic seconds.
        self.listed_at = 0.0
        # How many calls are being worked on.
        self._calls = 0
        # Set when a call failed, so that the connection is checked at once.
        self._check_requested = asyncio.Event()
        # Of `run`.
        self._scope = anyio.CancelScope()
        # Of the connection that was opened last.
        self._limit = MessageLimit(settings.name, self._check_requested)

    @property
    def unapproved(self) -> tuple[str, ...]:
        """Return the names of the tools that are off because nobody has approved them as they are now."""
        wanted = used_tools(self.listed, self.settings)
        return tuple(tool.name for tool in wanted if digest(tool) not in self._approved)

    async def run(self) -> None:
        """Keep the connection open until `stop`. *Cancellation* closes it and ends the server's process, unless that is
        under way: then it breaks it off.
        """
        with self._scope:
            failures = 0
            while True:
                opened_at: float | None = None
                try:
                    async with self.open() as client:
                        opened_at = self._clock.monotonic()
                        log.info("mcp_server_connected", server=self.settings.name, tool_count=len(self.tools))
                        await self.check_regularly(client)
                except (Exception, asyncio.CancelledError) as error:
                    # No error of a server may affect the rest of the bot, nor may one end this for good.
                    if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
                        raise
                    lasted = opened_at is not None and self._clock.monotonic() - opened_at >= STEADY_S
                    failures = 1 if lasted else failures + 1
                    if failures == 1:
                        log.warning("mcp_server_lost", server=self.settings.name, problem=error)
                await self._clock.sleep(retry_pause_s(failures, first_s=FIRST_RETRY_S, longest_s=LONGEST_RETRY_S))

    def stop(self, running: asyncio.Task[None]) -> None:
        """End `running`, the task of `run`. It closes the connection and ends the server's process.

        If it is connected, by asyncio's cancellation, with which the library ends a session over HTTP too. Otherwise
        it may be ending the server already, which it protects against its own kind of cancellation alone.
        """
        if self.connected.is_set():
            running.cancel()
        else:
            self._scope.cancel()

    @asynccontextmanager
    async def open(self, *, errors: TextIO | None = None) -> AsyncIterator[Client]:
        """Connect for the duration of the block and list the tools. Raises any error of the server or its program.

        `errors`: gets the program's error output. By default it is dropped, because it may contain anything.
        """
        limit = self._limit = MessageLimit(self.settings.name, self._check_requested)
        try:
            async with (
                self._transport(errors, limit) as transport,
                asyncio.timeout(CONNECT_TIMEOUT_S) as connecting,
                # Calls and checks have limits of their own.
                Client(transport, read_timeout_seconds=CONNECT_TIMEOUT_S) as client,
            ):
                await self.list_tools(client)
                connecting.reschedule(None)
                self._client = client
                self.connected.set()
                try:
                    yield client
                finally:
                    self._client, self.listed, self.tools = None, (), ()
                    self.connected.clear()
        except Exception as error:
            if limit.error is None or limit.error is error:
                raise
            # What the library makes of it says nothing about the cause.
            raise limit.error from error

    async def call(self, tool: str, arguments: Mapping[str, object]) -> str:
        """Return the result of a tool of the server. Raises `ToolError`, and `OutcomeUnknownError` if the server was
        asked and has not said what became of it.
        """
        client = self._client
        if client is None:
            raise ToolError(f"The server {self.settings.name} is away. Go on without it.")
        # Not `Client.call_tool`: that checks results against a schema of the server's own, and a malicious one, by a
        # pattern for example, could block the event loop for ever.
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        self._calls += 1
        try:
            result = await client.session.send_request(
                request, CallToolResult, request_read_timeout_seconds=CALL_TIMEOUT_S
            )
        except Exception as error:
            self._check_requested.set()
            why = f"The server {self.settings.name} failed: {_for_model(self._limit.error or error)}"
            is_undone = isinstance(error, MCPError) and error.code in _NOT_BEGUN
            raise (ToolError if is_undone else OutcomeUnknownError)(why) from error
        finally:
            self._calls -= 1
        # Images and other content are only named; of files, the text counts.
        texts = [(block, getattr(getattr(block, "resource", block), "text", None)) for block in result.content]
        parts = [text if isinstance(text, str) else f"[{block.type}, which I can't read]" for block, text in texts]
        if not parts and result.structured_content is not None:
            parts.append(json.dumps(result.structured_content, ensure_ascii=False))
        answer = "\n".join(parts) or "It answered nothing."
        if result.is_error:
            raise ToolError(answer)
        return answer

    async def check_regularly(self, client: Client) -> None:
        """List the tools every minute and after each failed call, but not during a call. Raises the error when the
        server does not answer, and `ServerDroppedError` when it has gone beyond a bound.
        """
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_S):
                    await self._check_requested.wait()
            self._check_requested.clear()
            if self._limit.error is not None:
                raise self._limit.error
            if self._calls:
                # Many servers do one thing after the other.
                continue
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await self.list_tools(client)

    async def list_tools(self, client: Client) -> None:
        """List the server's tools, and adapt them if the list has changed. Raises any error of the server."""
        listed = await _list_tools(client, self._limit)
        approved = await asyncio.to_thread(self._approvals.of, self.settings.name)
        if (listed, approved) == (self.listed, self._approved):
            return
        # In a thread: to check the schemas of a hundred tools takes seconds.
        self.tools = await asyncio.to_thread(adapt_tools, listed, self.settings, self.call, approved)
        self.listed, self._approved = listed, approved
        self.listed_at = self._clock.monotonic()
        if names := self.unapproved:
            log.warning("mcp_tools_not_approved", server=self.settings.name, count=len(names))

    @asynccontextmanager
    async def _transport(self, errors: TextIO | None, limit: MessageLimit) -> AsyncIterator[Any]:
        """Yield the transport for `Client`, which opens it."""
        settings = self.settings
        if settings.url:
            headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
            async with open_http(
                settings.url,
                headers=headers,
                # Calls have their own time limit; an event stream may be silent for long.
                timeout=httpx2.Timeout(CHECK_TIMEOUT_S, read=STREAM_TIMEOUT_S),
                most_bytes=message_limit.MOST_MESSAGE_BYTES,
                before_request=limit.check_request,
                endless_events=True,
                refusal=limit.refused,
            ) as http:
                yield bounded(streamable_http_client(to_connect(settings.url), http_client=http), limit)
            return
        parameters = StdioServerParameters(
            command=settings.command,
            args=list(settings.args),
            env={name: value.get_secret_value() for name, value in settings.env.items()},
        )
        with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123, ASYNC230 - opening it never blocks
            PROGRAM_LIMIT.set(limit)
            yield bounded(stdio_client(parameters, errlog=errors or nowhere), limit)


async def _list_tools(client: Client, limit: MessageLimit) -> tuple[McpTool, ...]:
    """Return the tools of all pages of a server's list. Raises any error of the server, and `ServerDroppedError`."""
    found: list[Tool] = []
    page = await client.list_tools(cache_mode="bypass")
    is_paged = page.next_cursor is not None
    paged_chars = 0
    while True:
        found += page.tools
        paged_chars += len(page.model_dump_json()) if is_paged else 0
        if paged_chars > message_limit.MOST_MESSAGE_BYTES:
            raise limit.exceed(f"lists tools in more than {message_limit.MOST_MESSAGE_BYTES // 1_000_000} MB")
        if page.next_cursor is None or not page.tools or len(found) >= MOST_TOOLS:
            break
        page = await client.list_tools(cursor=page.next_cursor, cache_mode="bypass")
    del found[MOST_TOOLS:]
    if is_paged:
        # The library keeps what any page has ever described, and forgets tools that are gone only with a list of one
        # page. So it is given the whole list as one.
        client.session._absorb_tool_listing(ListToolsResult(tools=found), complete=True)
    return tuple(McpTool(tool.name, tool.description or "", tool.input_schema) for tool in found)


def _for_model(error: BaseException) -> str:
    """Return what a model reads of an error, and may say aloud: without the server's address."""
    match cause := first_cause(error):
        case MCPError():
            return describe_server_error(cause)
        case ServerDroppedError():
            return for_people(sentence_of(cause))
        case _:
            return "it does not answer"


def describe_server_error(error: BaseException) -> str:
    """Return an error in one line, without control characters; the first error of an exception group. URLs are cut to
    the host, because the rest may contain keys.
    """
    match cause := first_cause(error):
        case TimeoutError():
            sentence = "it did not answer in time"
        case FileNotFoundError():
            sentence = f"there is no program {cause.filename!r}"
        case MCPError():
            sentence = cause.message
        case _:
            sentence = str(cause) or type(cause).__name__
    # Reading all of a message of megabytes would hold up the bot.
    return " ".join(_ADDRESS.sub(r"\1\2", visible(sentence[: 10 * _ERROR_CHARS])).split())[:_ERROR_CHARS]
