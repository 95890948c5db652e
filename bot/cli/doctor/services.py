"""Whether Discord, the language models, tool servers and the pages for screens are set up and answer.

It also approves the tools of an MCP server (`roomtone doctor --approve`).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.cli.doctor.finding import Finding, Status, written_address
from bot.cli.failures import INSTALL_PARTS
from bot.cli.output import confirm, count, say
from bot.discord.endpoint import form_fault, token_of
from bot.errors import BotError, SetupError
from bot.llm.port import ChatModelError
from bot.mcp.tools import Approvals, McpTool, digest, used_tools
from compaction.untrusted_text import visible
from voice.errors import EnvironmentProxyError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from bot.llm.settings import LlmSettings
    from bot.mcp.settings import McpServerSettings
    from bot.settings import DiscordSettings, WebSettings
    from config.schema import Settings
    from voice.screen.settings import ScreenSettings

MCP_TOOLS_SHOWN = 12
# It answers from memory.
READY_TIMEOUT_S = 5.0
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


async def check_discord(settings: DiscordSettings) -> Finding:
    """Check the bot's token by its form, and then ask Discord whose it is."""
    # Imported here because it is slow.
    from bot.discord.connection import known_bot

    where = (
        "Discord's developer portal (https://discord.com/developers/applications, your application, Bot, Reset Token)"
    )
    if not token_of(settings):
        return Finding(
            "discord",
            Status.WARNING,
            "no token: `roomtone run` plays the rehearsal instead of joining Discord",
            f"Run `roomtone setup`, or take a token from {where} and put DISCORD_TOKEN=… into .env.",
        )
    if (fault := form_fault(settings)) is not None:
        return Finding(
            "discord",
            Status.MISSING,
            fault.removesuffix("."),
            f"Copy it again from {where}; the application's id, its secret and its public key are other things.",
        )
    try:
        bot = await known_bot(settings)
    except SetupError as error:
        return Finding.told("discord", Status.MISSING, error)
    detail = f"takes the token, which is that of {bot.name}"
    if bot.lacks:
        # Names of servers are others' words.
        told = " ".join(visible(str(each)) for each in bot.lacks)
        return Finding(
            "discord", Status.WARNING, f"{detail}. {told}", "`roomtone invite` prints the link with all of them."
        )
    return Finding("discord", Status.OK, detail)


def is_listed(model: str, names: Collection[str]) -> bool:
    """Return whether a server that lists these names answers to that of `model`. Ollama lists llama3.2 as
    llama3.2:latest, and Anthropic a model with its date behind it.
    """
    return any(each == model or each.startswith((f"{model}:latest", f"{model}-2")) for each in names)


async def check_language_model(settings: LlmSettings) -> Finding:
    """Check whether the chat model's endpoint answers, takes the key and knows the model, and call the model once."""
    from bot.llm.factory import list_served_models, try_model

    if not settings.configured:
        return Finding(
            "language model",
            Status.WARNING,
            "none is set, so the bot answers with quotes of what was said, and says so",
            "Put OPENAI_API_KEY=… into .env, or set llm.base_url and llm.model to any OpenAI-compatible server.",
        )
    try:
        names = await list_served_models(settings)
        if not names or is_listed(settings.model, names):
            await try_model(settings)
            return Finding(
                "language model", Status.OK, f"{settings.model} at {settings.base_url or 'OpenAI'} has answered"
            )
    except (ChatModelError, EnvironmentProxyError) as error:
        return unanswered(error)
    return replace(check_listed(settings, names), status=Status.MISSING)


def unanswered(error: ChatModelError | EnvironmentProxyError) -> Finding:
    """Return what an endpoint that does not answer means."""
    detail, _, remedy = str(error).partition(". ")
    return Finding("language model", Status.MISSING, detail.rstrip("."), remedy or "Check llm.base_url and the key.")


def check_listed(settings: LlmSettings, names: Sequence[str]) -> Finding:
    """Return whether the chat model is among those that its endpoint lists, which may not be all that it serves."""
    where = settings.base_url or "OpenAI"
    if not names:
        return Finding(
            "language model",
            Status.WARNING,
            f"{where} answers, but lists no model",
            f"In Ollama run `ollama pull {settings.model}`. Other servers may serve a model that they do not list.",
        )
    if not is_listed(settings.model, names):
        shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
        return Finding(
            "language model",
            Status.WARNING,
            f"{where} answers, but does not list {settings.model}",
            f"Set llm.model to one of: {shown}.",
        )
    return Finding("language model", Status.OK, f"{settings.model} at {where}")


async def check_mcp_server(settings: McpServerSettings, approvals: Approvals) -> Finding:
    """Check whether an MCP server answers, and its tools. The bot runs without it."""
    from bot.mcp.servers import list_server_tools

    try:
        tools = await list_server_tools(settings, approvals)
    except BotError as error:
        remedy = f"Check the {'url' if settings.url else 'command'} of the server in [[mcp.servers]]."
        return Finding(f"mcp {settings.name}", Status.WARNING, f"it does not answer: {error}", remedy)
    return check_tools(settings, tools, approvals.of(settings.name))


def check_tools(settings: McpServerSettings, tools: Sequence[McpTool], approved: Collection[str]) -> Finding:
    """Check whether the tools of a server are approved (by `digest`), and for somebody."""
    name = f"mcp {settings.name}"
    names = {tool.name for tool in tools}
    shown = ", ".join(visible(tool.name) for tool in tools[:MCP_TOOLS_SHOWN])
    shown += " …" if len(tools) > MCP_TOOLS_SHOWN else ""
    if missing := [tool for tool in settings.tools if tool not in names]:
        return Finding(name, Status.WARNING, f"it has no {', '.join(missing)}", f"It offers: {shown}.")
    if not (settings.guilds and settings.roles):
        remedy = "Name the servers and roles that it is for in its `guilds` and `roles` (docs/tools.md)."
        return Finding(name, Status.WARNING, "it is for nobody", remedy)
    used = used_tools(tools, settings)
    if fresh := [tool for tool in used if digest(tool) not in approved]:
        detail = f"{count(len(fresh), 'tool')} of {len(used)} off: not approved as described now"
        return Finding(name, Status.WARNING, detail, f"Read and approve: roomtone doctor --approve {settings.name}")
    at_once = sum(settings.use_of(tool.name) == "never ask" for tool in used)
    return Finding(name, Status.OK, f"{count(len(used), 'tool')} approved, {at_once} of them without a press")


def approve_tools(settings: Settings, name: str, *, yes: bool) -> None:
    """Show the tools of the server called `name` that are not off, and approve them if whoever reads says yes.

    Raises `SetupError`, `McpError`, `typer.Abort`.
    """
    from bot.mcp.servers import list_server_tools

    server = next((each for each in settings.mcp.servers if each.name == name), None)
    if server is None:
        known = ", ".join(each.name for each in settings.mcp.servers) or "none"
        raise SetupError(f"No MCP server in the settings is called {name!r}. There are: {known}.")
    approvals = Approvals(settings.storage.data_dir)
    tools = used_tools(asyncio.run(list_server_tools(server, approvals)), server)
    if not tools:
        raise SetupError(f"{name} has no tools, or all of them are off.")
    before = approvals.of(name)
    for tool in tools:
        say(_described(tool, server.use_of(tool.name), is_new=digest(tool) not in before))
    confirm(f"May people use {count(len(tools), 'tool')} of {name} as they are described here?", yes=yes)
    try:
        approvals.approve(name, map(digest, tools))
    except OSError as error:
        raise SetupError(f"The approval cannot be written: {error}.") from error
    say("Approved. A bot that runs offers them within a minute.")


def _described(tool: McpTool, use: str, *, is_new: bool) -> str:
    """Return a tool as its server describes it, with every sign that cannot be seen left out."""
    mark = " (not approved as it is now)" if is_new else ""
    about = "\n".join(f"  {visible(line)}" for line in tool.description.splitlines())
    schema = "\n".join(f"  {visible(line)}" for line in json.dumps(tool.schema, indent=2).splitlines())
    return f"{visible(tool.name)}: {use}{mark}\n{about}\n{schema}\n"


def check_running_bot(web: WebSettings) -> list[Finding]:
    """Ask the bot that runs with these settings what is wrong: /readyz."""
    name, where = "running bot", f"http://{written_address(web.host, web.port)}/readyz"
    try:
        with closing(HTTPConnection(web.host, web.port, timeout=READY_TIMEOUT_S)) as asked:
            asked.request("GET", "/readyz")
            body = json.load(asked.getresponse())
        wrong = [
            Finding(name, Status.WARNING, each["sentence"], each["remedy"]) for each in body["causes"] + body["notes"]
        ]
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return [Finding(name, Status.WARNING, f"it does not answer at {where}", "Look at its log: `roomtone tail`.")]
    return wrong or [Finding(name, Status.OK, "everything works")]


def check_screens(screen: ScreenSettings, web: WebSettings, *, installed: bool) -> Finding:
    """Check whether people can share screens. The rest of the bot works without this.

    `installed`: whether the text-reading extra is installed.
    """
    if not screen.enabled:
        return Finding("screens", Status.OK, "switched off (screen.enabled)")
    if not installed:
        without = "the vision model alone reads them" if screen.model else "nothing reads them"
        return Finding(
            "screens",
            Status.WARNING,
            f"the part 'screen' is not installed: {without}",
            INSTALL_PARTS,
        )
    reader = f"the vision model {screen.model} and embedded reading" if screen.model else "embedded reading"
    address = urlsplit(web.public_url)
    if not web.public_url:
        return Finding("screens", Status.OK, f"{reader}; links work on this machine alone (PUBLIC_URL is not set)")
    if address.scheme != "https" and address.hostname not in _LOCAL_HOSTS:
        return Finding(
            "screens",
            Status.WARNING,
            f"{web.public_url} is not https: no browser shares a screen with it",
            "Put a reverse proxy with a certificate in front and set PUBLIC_URL to its https address "
            "(docs/operations.md).",
        )
    return Finding("screens", Status.OK, f"{reader}; pages at {web.public_url}")
