"""Listing the tools of a server: a list is adapted once, and not by the event loop."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from bot.brain.tools.schema import schema_problem
from bot.mcp import tools as module
from bot.mcp.connection import McpConnection
from bot.mcp.servers import McpServers
from bot.mcp.settings import McpServerSettings
from tests.fakes.clock import FakeClock

pytestmark = pytest.mark.asyncio


class ListingClient:
    """A client whose server offers what the test says."""

    def __init__(self) -> None:
        self.schemas: dict[str, dict[str, object]] = {}

    async def list_tools(self, **_: object) -> Any:
        """Return all tools on one page."""
        found = [
            SimpleNamespace(name=name, description="", input_schema=schema, annotations=None)
            for name, schema in self.schemas.items()
        ]
        return SimpleNamespace(tools=found, next_cursor=None)


def a_connection() -> tuple[McpConnection, Any]:
    """Return a connection and its client."""
    settings = McpServerSettings(name="hub", url="https://hub.example/mcp", tools=("*",))
    return McpConnection(settings, FakeClock()), cast("Any", ListingClient())


async def test_a_list_is_adapted_once() -> None:
    """A room needs the tools several times for each reply, and the list is read every minute."""
    connection, client = a_connection()
    client.schemas = {"read": {"type": "object"}, "broken": {"type": "array"}}
    servers = McpServers((connection,))
    with capture_logs() as logs:
        await connection.list_tools(client)
        (tool,) = servers.tools()
        await connection.list_tools(client)
        assert servers.tools() == (tool,)
        assert servers.tools()[0] is tool
    assert [line["event"] for line in logs] == ["mcp_tool_unusable"]
    client.schemas = {}
    await connection.list_tools(client)
    assert servers.tools() == ()


async def test_schemas_are_checked_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking those of a hundred tools takes seconds, in which everybody would have to wait for an answer."""
    threads: set[threading.Thread] = set()

    def checked(schema: dict[str, object]) -> str | None:
        threads.add(threading.current_thread())
        return schema_problem(schema)

    monkeypatch.setattr(module, "schema_problem", checked)
    connection, client = a_connection()
    client.schemas = {"read": {"type": "object"}}
    await connection.list_tools(client)
    assert [tool.name for tool in connection.tools] == ["hub_read"]
    assert threads
    assert threading.current_thread() not in threads
