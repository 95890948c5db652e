"""What became of a call is told truly, whatever a server, or a proxy before it, answers over HTTP."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.brain.tools.tool import NOBODY, ToolOutcome
from bot.mcp.servers import running_servers
from bot.mcp.settings import McpServerSettings, McpSettings
from tests.bot.mcp.approved import AllApproved
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

JSON, EVENTS = "application/json", "text/event-stream"
NO_MONEY = '"result": {"content": [{"type": "text", "text": "No money."}], "isError": true}'


class Bank:
    """A server with a tool that pays. `status`, `body` and `kind`: its answer to a call, which names the `{id}`."""

    def __init__(self, status: int, body: str, kind: str) -> None:
        self.paid = 0
        self._answer = status, body, kind

    async def serve(self, request: web.Request) -> web.Response:
        """Answer one message."""
        asked = await request.json()
        about = {"jsonrpc": "2.0", "id": asked.get("id")}
        match asked["method"]:
            case "tools/call":
                self.paid += 1
                status, body, kind = self._answer
                return web.Response(status=status, text=body.replace("{id}", str(asked["id"])), content_type=kind)
            case "tools/list":
                tool = {"name": "pay", "inputSchema": {"type": "object"}}
                return web.json_response({**about, "result": {"tools": [tool]}})
            case "initialize":
                version, info = asked["params"]["protocolVersion"], {"name": "bank", "version": "1"}
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
                return web.json_response({**about, "result": result})
            case _:
                error = {"code": -32601, "message": "No."}
                return web.json_response({**about, "error": error}) if "id" in asked else web.Response(status=202)


def _error(code: int) -> str:
    return f'{{"jsonrpc": "2.0", "id": {{id}}, "error": {{"code": {code}, "message": "No."}}}}'


@pytest.mark.server
@pytest.mark.parametrize(
    ("status", "body", "kind", "outcome"),
    [
        (202, "", JSON, "lost"),
        (500, "", "text/html", "lost"),
        (502, "<html>", "text/html", "lost"),
        (504, "{}", JSON, "lost"),
        (200, "Paid.", "text/html", "lost"),
        (200, '{"jsonrpc": "2.0", "id"', JSON, "lost"),
        (200, ": nothing\n\n", EVENTS, "lost"),
        (200, "event: message\ndata: {{{\n\n", EVENTS, "lost"),
        (200, '{"jsonrpc": "2.0", "id": {id}, "result": {"content": 7}}', JSON, "lost"),
        *((200, _error(code), JSON, "lost") for code in (-32603, -32600, -32700, 7)),
        *((200, _error(code), JSON, "failed") for code in (-32601, -32602)),
        (200, f'{{"jsonrpc": "2.0", "id": {{id}}, {NO_MONEY}}}', JSON, "failed"),
        (200, '{"jsonrpc": "2.0", "id": {id}, "result": {"content": []}}', JSON, "answered"),
    ],
)
async def test_what_a_server_has_not_said_is_not_known(status: int, body: str, kind: str, outcome: ToolOutcome) -> None:
    """It has the call, and may have carried it out: nobody is told that it failed, and it is not tried again."""
    bank, app = Bank(status, body, kind), web.Application()
    app.router.add_post("/mcp", bank.serve)
    async with TestServer(app) as server, asyncio.timeout(PATIENCE_S):
        settings = McpServerSettings.model_validate({"name": "bank", "url": str(server.make_url("/mcp"))})
        async with running_servers(McpSettings(servers=(settings,)), FakeClock(), AllApproved()) as running:
            (connection,) = running.connections
            await connection.connected.wait()
            (tool,) = connection.tools
            told, _ = await tool.run({}, NOBODY)
    assert (told, bank.paid) == (outcome, 1)
