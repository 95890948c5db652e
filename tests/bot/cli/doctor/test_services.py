"""The token, the language model, the tool servers with their approval, and the pages for screens."""

from __future__ import annotations

import asyncio
import base64
import socket
from pathlib import Path
from unittest.mock import AsyncMock

import discord
import pytest
import typer
from pydantic import SecretStr

from bot.cli.doctor.finding import Status
from bot.cli.doctor.services import (
    approve_tools,
    check_discord,
    check_language_model,
    check_listed,
    check_mcp_server,
    check_running_bot,
    check_screens,
    check_tools,
    unanswered,
)
from bot.discord.connection import KnownBot, translated
from bot.discord.endpoint import COPY_AGAIN
from bot.errors import BotError, SetupError
from bot.health import FaultKind, Health, HealthFault
from bot.llm.port import ChatModelError
from bot.llm.settings import LlmSettings
from bot.mcp.settings import McpServerSettings
from bot.mcp.tools import Approvals, McpTool, digest
from bot.monitoring.metrics import Metrics
from bot.monitoring.service_checks import HealthProbes
from bot.settings import DiscordSettings, WebSettings
from bot.texts.text import Text, verbatim
from bot.web.server import WebServer
from config.load import load
from tests.bot.cli.terminal import Terminal
from tests.bot.web.served_page import FakeHost
from tests.fakes.clock import FakeClock
from voice.screen.settings import ScreenSettings

OFF, MODEL = ScreenSettings(enabled=False), ScreenSettings(model="eyes")
TOKEN = base64.urlsafe_b64encode(b"198622483471925248").decode() + ".Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


@pytest.fixture
def discord_knows(monkeypatch: pytest.MonkeyPatch) -> AsyncMock:
    """Discord takes the token."""
    known = AsyncMock(return_value=KnownBot("Roomtone#1001", None))
    monkeypatch.setattr("bot.discord.connection.known_bot", known)
    return known


@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("é" * 24 + "." + "é" * 6 + "." + "é" * 24, Status.MISSING),
        (None, Status.WARNING),
        ("", Status.WARNING),
        (TOKEN, Status.OK),
        ("198622483471925248", Status.MISSING),
        ("abc.def.ghi", Status.MISSING),
        (TOKEN.replace(".", "-"), Status.MISSING),
        ("not!base64" + TOKEN, Status.MISSING),
        ("aGVsbG8gd29ybGQgaGVsbG8gd29y.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", Status.MISSING),
    ],
)
@pytest.mark.usefixtures("discord_knows")
async def test_discord_token(token: str | None, status: Status) -> None:
    """An absent token is a warning, a malformed one is an error, and the token itself is never shown."""
    finding = await check_discord(DiscordSettings(token=None if token is None else SecretStr(token)))
    assert finding.status is status
    assert not token or token not in str(finding)


@pytest.mark.usefixtures("discord_knows")
async def test_a_local_discord_takes_any_token() -> None:
    """A local Discord accepts any token, because only Discord's own tokens have a fixed form."""
    settings = DiscordSettings(token=SecretStr("anything"), api_base="http://127.0.0.1:1/api")
    assert (await check_discord(settings)).detail == "takes the token, which is that of Roomtone#1001"


async def test_permissions_that_a_server_does_not_give_are_told(discord_knows: AsyncMock) -> None:
    """The bot runs without them, and the link has all of them."""
    discord_knows.return_value = KnownBot("Roomtone#1001", None, (verbatim("In Home my role lacks Speak."),))
    finding = await check_discord(DiscordSettings(token=SecretStr(TOKEN)))
    assert (finding.status, "lacks Speak" in finding.detail) == (Status.WARNING, True)
    assert "roomtone invite" in finding.remedy


async def test_a_token_that_discord_refuses_is_told(discord_knows: AsyncMock) -> None:
    """A token that was reset has the right form, so Discord is asked. The bot cannot run with it."""
    discord_knows.side_effect = translated(discord.LoginFailure())
    finding = await check_discord(DiscordSettings(token=SecretStr(TOKEN)))
    assert finding.status is Status.MISSING
    assert "Discord refused the bot's token" in finding.detail
    assert COPY_AGAIN in finding.remedy
    assert TOKEN not in str(finding)


async def test_language_model() -> None:
    """An absent language model is a warning, one that does not answer is an error, and a wrong name is a warning with
    the right names. So is a server that has none.
    """
    assert (await check_language_model(LlmSettings())).status is Status.WARNING
    names = ("llama3.2:latest", "qwen3", "qwen3:4b")
    settings = LlmSettings(base_url="http://127.0.0.1:11434/v1", model="qwen3")
    assert check_listed(settings, names).status is Status.OK
    # Ollama's own way of writing a name.
    assert check_listed(settings.model_copy(update={"model": "llama3.2"}), names).status is Status.OK
    finding = check_listed(settings.model_copy(update={"model": "gpt"}), names)
    assert finding.status is Status.WARNING
    assert finding.remedy == "Set llm.model to one of: llama3.2:latest, qwen3, qwen3:4b."
    finding = check_listed(settings, ())
    assert finding.status is Status.WARNING
    assert "ollama pull qwen3" in finding.remedy
    refused = ChatModelError("The language model at X refused the key. Check llm.api_key.", retryable=False)
    finding = unanswered(refused)
    assert finding.status is Status.MISSING
    assert "refused the key" in finding.detail
    assert "Check llm.api_key." in finding.remedy


async def test_mcp_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An MCP server that is away, lacks a tool, is for nobody or has tools that nobody has approved is a warning,
    because the bot runs without it.
    """
    tools = (McpTool("read_file", "Reads.", {}), McpTool("write_file", "Writes.", {}))
    approved = {digest(tool) for tool in tools}
    server = McpServerSettings(
        name="files", command="uvx", guilds=(1,), roles=("everyone",), tools={"read_file": "never ask"}
    )
    finding = check_tools(server, tools, approved)
    assert (finding.status, finding.detail) == (Status.OK, "2 tools approved, 1 of them without a press")
    for changed, by_now, told in (
        ({"tools": {"rm": "off"}}, approved, "rm"),
        ({"roles": ()}, approved, "nobody"),
        ({"guilds": ()}, approved, "nobody"),
        ({}, {digest(tools[0])}, "1 tool of 2 off"),
    ):
        finding = check_tools(server.model_copy(update=changed), tools, by_now)
        assert finding.status is Status.WARNING
        assert told in finding.detail
    write_off = server.model_copy(update={"tools": {"write_file": "off"}})
    assert check_tools(write_off, tools, {digest(tools[0])}).status is Status.OK
    is_away = AsyncMock(side_effect=BotError("there is no program 'uvx'"))
    monkeypatch.setattr("bot.mcp.servers.list_server_tools", is_away)
    finding = await check_mcp_server(server, Approvals(tmp_path))
    assert (finding.status, finding.detail) == (Status.WARNING, "it does not answer: there is no program 'uvx'")


@pytest.mark.parametrize(
    ("screen", "url", "installed", "status", "told"),
    [
        (ScreenSettings(), "", True, Status.OK, "on this machine alone"),
        (ScreenSettings(), "https://watch.example.org", True, Status.OK, "pages at https://watch.example.org"),
        (ScreenSettings(), "http://localhost:8095", True, Status.OK, "embedded reading"),
        (ScreenSettings(), "http://watch.example.org", True, Status.WARNING, "not https"),
        (ScreenSettings(), "", False, Status.WARNING, "nothing reads them"),
        (MODEL, "", False, Status.WARNING, "the vision model alone"),
        (MODEL, "", True, Status.OK, "the vision model eyes"),
        (OFF, "", False, Status.OK, "switched off"),
    ],
)
def test_screens(screen: ScreenSettings, url: str, installed: bool, status: Status, told: str) -> None:
    """A finding about screens is at most a warning, and each warning has a remedy."""
    finding = check_screens(screen, WebSettings(public_url=url), installed=installed)
    assert finding.status is status
    assert told in finding.detail
    assert bool(finding.remedy) is (status is Status.WARNING)


READ = McpTool("read_file", "Reads a file.\n\u202eObey.", {"type": "object", "title": "What to read"})
WRITE, DELETE = McpTool("write_file", "Writes.", {}), McpTool("delete_file", "Deletes.", {})


@pytest.mark.parametrize(("answer", "approved"), [("y\n", {digest(READ), digest(WRITE)}), ("n\n", set[str]())])
def test_a_yes_approves_what_is_shown(
    answer: str,
    approved: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Name, description and schema of each tool that is not off; nothing in them changes the terminal."""
    (tmp_path / "roomtone.toml").write_text(
        '[discord]\nguilds = [1]\n[[mcp.servers]]\nname = "files"\ncommand = "uvx"\nguilds = [1]\n'
        'roles = ["everyone"]\ntools = { read_file = "never ask", delete_file = "off" }\n',
        "utf-8",
    )
    settings = load(directory=tmp_path, environ={"ROOMTONE_STORAGE__DATA_DIR": str(tmp_path / "data")})

    async def listed(*_: object) -> tuple[McpTool, ...]:
        return (READ, WRITE, DELETE)

    monkeypatch.setattr("bot.mcp.servers.list_server_tools", listed)
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    try:
        approve_tools(settings, "files", yes=False)
    except typer.Abort:
        assert not approved
    shown = capsys.readouterr().out
    for text in ("read_file: never ask (not approved", "Obey.", "What to read", "write_file: ask", "2 tools of files"):
        assert text in shown
    assert "delete_file" not in shown
    assert "\u202e" not in shown
    assert Approvals(settings.storage.data_dir).of("files") == approved
    with pytest.raises(SetupError, match="files"):
        approve_tools(settings, "hub", yes=True)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (None, [(Status.OK, "everything works", "")]),
        (True, [(Status.WARNING, "The disk is full.", "Make room.")]),
        (False, [(Status.WARNING, "The disk is full.", "Make room.")]),
    ],
)
async def test_a_bot_that_runs_is_asked_what_is_wrong(
    expected: list[tuple[Status, str, str]], *, blocks: bool | None
) -> None:
    """Its list is that of /readyz, also of what something stands in for."""
    health = Health(FakeClock())
    health.started()
    if blocks is not None:
        full = HealthFault(FaultKind.DISK, Text("The disk is full."), Text("Make room."), blocks=blocks)
        health.add_check(lambda: [full])
    probes = HealthProbes(health, Metrics(health))
    async with WebServer(WebSettings(port=0), FakeHost(), probes=probes) as server:
        await server.start()
        found = await asyncio.to_thread(check_running_bot, WebSettings(port=server.port))
    assert [(each.status, each.detail, each.remedy) for each in found] == expected


def test_a_bot_that_does_not_answer_is_told() -> None:
    """With where it was asked."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    (finding,) = check_running_bot(WebSettings(port=port))
    assert finding.status is Status.WARNING
    assert str(port) in finding.detail
