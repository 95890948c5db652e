"""The connection to a real MCP server: its tools, its failures and its restart."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client import stdio
from structlog.typing import EventDict

from bot.brain.tools.tool import Asker, ToolError
from bot.brain.tools.toolbox import Toolbox
from bot.mcp.connection import REFRESH_S, describe_server_error
from bot.mcp.message_limit import ServerDroppedError
from bot.mcp.servers import McpError, McpServers, list_server_tools, running_servers
from bot.mcp.settings import McpServerSettings, McpSettings
from bot.mcp.tools import CALL_TIMEOUT_S
from compaction.payload import MessageToolCall
from tests.bot.brain.tools.calls import told
from tests.bot.mcp.approved import SERVER, AllApproved
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import loop_turns, pass_loop_time, wait_out
from tests.patience import PATIENCE_S, settle

pytestmark = pytest.mark.process

ADA = Asker(1, "Ada", present=True)
GUILD = 500


def desk(**settings: object) -> McpServerSettings:
    """Return settings for the server in server.py."""
    values = {"command": sys.executable, "args": [str(SERVER)], "guilds": [GUILD], "roles": ["everyone"]}
    return McpServerSettings.model_validate({"name": "desk", **values, **settings})


@asynccontextmanager
async def servers(*settings: McpServerSettings, clock: FakeClock | None = None) -> AsyncIterator[McpServers]:
    """Start the servers, and wait until the first is connected."""
    async with running_servers(McpSettings(servers=settings), clock or FakeClock(), AllApproved()) as running:
        await settle(running.connections[0].connected.is_set)
        yield running


async def test_tools_are_called_as_ours(logs: list[EventDict]) -> None:
    """The tools of an MCP server are called through the toolbox with all its checks; their names begin with the
    server's. A server that cannot be started takes nothing from another one.
    """
    never_ask = dict.fromkeys(("add", "secret"), "never ask")
    missing = desk(name="missing", command="no-such-program", args=[])
    async with servers(desk(tools={**never_ask, "die": "off"}, env={"DESK_KEY": "key-1"}), missing) as running:
        toolbox = Toolbox(personal=lambda _: running.tools(GUILD))
        offers = {offer.name: offer for offer in toolbox.for_asker(ADA).offers}
        assert {"desk_add", "desk_create_note"} <= set(offers)
        assert "desk_die" not in offers
        assert "</data>" not in offers["desk_add"].description
        assert [tool.title for tool in running.tools(GUILD) if not tool.asks] == ["add", "secret"]
        assert running.tools(GUILD + 1) == (), "it is not for that Discord server"
        use = toolbox.for_asker(ADA)
        assert "The sum is 5." in await told(use, MessageToolCall("a", "desk_add", '{"left": 2, "right": 3}'))
        assert "arguments are wrong" in await told(use, MessageToolCall("a", "desk_add", '{"left": "two"}'))
        secret = await told(use, MessageToolCall("a", "desk_secret", "{}"))
        assert "key-1 None" in secret, "our own tokens are not handed on"
    lost = [line["problem"] for line in logs if line["event"] == "mcp_server_lost"]
    assert [describe_server_error(each) for each in lost] == ["there is no program 'no-such-program'"]


async def test_what_a_call_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text, or a `ToolError` where the tool fails, is unknown or too slow. The connection stays open."""
    async with servers(desk()) as running:
        (connection,) = running.connections
        # GitHub's server sends a file as a resource beside a sentence about it. What is no text is only named.
        assert await connection.call("fetch", {}) == "Fetched.\nBuy milk.\n[resource, which I can't read]"
        # A schema of the server's could keep the event loop busy for ever, so even what it does not allow is only text.
        assert "stone" in await connection.call("weigh", {})
        calling = asyncio.create_task(connection.call("sleep", {}))
        await wait_out(monkeypatch, CALL_TIMEOUT_S)
        with pytest.raises(ToolError, match=r"desk.*timed out"):
            await calling
        with pytest.raises(ToolError, match="fail"):
            await connection.call("fail", {})
        with pytest.raises(ToolError):
            await connection.call("rm", {})
        assert await connection.call("add", {"left": 1, "right": 1}) == "The sum is 2."


async def test_a_program_that_sends_too_much_at_once_is_dropped(logs: list[EventDict]) -> None:
    """A long answer is taken; a longer one ends the connection, and the log and the model read why. It is started
    again as after a crash.
    """
    clock = FakeClock()
    async with servers(desk(), clock=clock) as running:
        connection = running.connections[0]
        assert len(await connection.call("flood", {"megabytes": 1})) == 1_000_000
        with pytest.raises(ToolError, match=r"desk.*4 MB"):
            await connection.call("flood", {"megabytes": 5})
        await clock.until_somebody_sleeps()
        assert running.tools(GUILD) == ()
        clock.advance(1.0)
        await connection.connected.wait()
        assert await connection.call("add", {"left": 1, "right": 1}) == "The sum is 2."
    (lost,) = [line for line in logs if line["event"] == "mcp_server_lost"]
    assert isinstance(lost["problem"], ServerDroppedError)


async def test_a_visit_tells_what_there_is() -> None:
    """`list_server_tools`, which `roomtone doctor` uses, returns a server's tools or raises an error with
    the reason.
    """
    assert {"add", "die"} <= {tool.name for tool in await list_server_tools(desk(), AllApproved())}
    with pytest.raises(McpError, match="no-such-program"):
        await list_server_tools(desk(command="no-such-program", args=[]), AllApproved())
    with pytest.raises(McpError):
        await list_server_tools(McpServerSettings(name="web", url="http://127.0.0.1:9/mcp"), AllApproved())
    with pytest.raises(McpError):
        await list_server_tools(desk(args=["-c", "print('hello')"]), AllApproved())


def test_an_error_changes_nothing_on_a_terminal() -> None:
    """`roomtone doctor` prints what a server has answered."""
    assert describe_server_error(RuntimeError("No.\x1b]0;pwned\x07\u202e Sorry.")) == "No.]0;pwned Sorry."


@pytest.mark.parametrize(
    "url",
    [
        "https://hub.example/k3y-in-the-path/mcp",
        "https://hub.example/mcp?key=k3y",
        "https://k3y@hub.example",
        "http://me:k3y@hub.example:8080/x",
    ],
)
def test_no_key_of_an_address_is_told(url: str) -> None:
    """An error message shows only the host of an address, so no key in it reaches the log or the model."""
    error = describe_server_error(RuntimeError(f"Client error '401 Unauthorized' for url '{url}'\nSee {url} again"))
    assert "k3y" not in error
    assert error.count("hub.example") == 2
    assert error.startswith("Client error '401 Unauthorized' for url 'http")


async def test_ending_while_it_still_connects(tmp_path: Path) -> None:
    """A server program that never answers is ended when the bot ends."""
    started = tmp_path / "started"
    os.mkfifo(started)
    silent = desk(args=["-c", f"import time; open({str(started)!r}, 'w').close(); time.sleep(600)"])
    async with running_servers(McpSettings(servers=(silent,)), FakeClock(), AllApproved()) as running:
        # Opening the pipe waits until the program has opened it too.
        await asyncio.to_thread(started.read_bytes)
        assert running.tools(GUILD) == ()


@pytest.mark.parametrize("turns", [0, 2, 5])
async def test_ending_while_a_lost_server_is_being_ended(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    """A server that hangs is ended before the bot, also if the bot ends just then. `turns`: of the event loop."""
    begins, ended, stop = asyncio.Event(), list[Any](), stdio._stop_server_process

    async def stop_slowly(process: Any) -> None:
        begins.set()
        await loop_turns(4)
        await stop(process)
        ended.append(process)

    async def hang(_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(stdio, "_stop_server_process", stop_slowly)
    async with servers(desk()) as running:
        (connection,) = running.connections
        monkeypatch.setattr(connection, "list_tools", hang)
        pass_loop_time(monkeypatch, REFRESH_S)
        await begins.wait()
        await loop_turns(turns)
    (process,) = ended
    assert process.returncode is not None


async def test_a_server_is_not_checked_while_it_works_on_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many do one thing after the other, and would be taken for lost."""
    checked = asyncio.Event()

    async def list_tools(_: object) -> None:
        checked.set()

    async with servers(desk()) as running:
        (connection,) = running.connections
        calling = asyncio.create_task(connection.call("sleep", {}))
        await asyncio.sleep(0)
        monkeypatch.setattr(connection, "list_tools", list_tools)
        pass_loop_time(monkeypatch, REFRESH_S)
        await loop_turns(20)
        assert not checked.is_set()
        calling.cancel()
        await asyncio.wait({calling})
        pass_loop_time(monkeypatch, 2 * REFRESH_S)
        await checked.wait()


async def test_a_model_reads_no_address_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may say it aloud. What the server itself says of a failure is passed on."""
    async with servers(desk()) as running:
        (connection,) = running.connections

        async def fail(*_: object, **__: object) -> None:
            raise RuntimeError("Client error '502 Bad Gateway' for url 'http://10.0.0.7:8123/mcp'")

        monkeypatch.setattr(ClientSession, "send_request", fail)
        with pytest.raises(ToolError) as failed:
            await connection.call("add", {"left": 1, "right": 1})
    assert str(failed.value) == "The server desk failed: it does not answer"


async def test_a_server_over_http() -> None:
    """A server over streamable HTTP offers the same tools."""
    process = await asyncio.create_subprocess_exec(sys.executable, str(SERVER), "0", stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        url = ""
        async with asyncio.timeout(PATIENCE_S):
            while "http://" not in url:
                url = (await process.stderr.readline()).decode()
        address = url.split("http://")[1].split()[0]
        web = McpServerSettings.model_validate({"name": "web", "url": f"http://{address}/mcp", "tools": {}})
        async with servers(web) as running:
            assert await running.connections[0].call("add", {"left": 1, "right": 2}) == "The sum is 3."
    finally:
        process.kill()
        await process.wait()
