"""`roomtone doctor --approve SERVER`: shows the tools of an MCP server in full, and records which are approved."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from bot.cli.output import confirm, count, say
from bot.errors import SetupError
from bot.mcp.approvals import Approvals
from bot.mcp.servers import list_server_tools
from bot.mcp.tools import digest, used_tools
from compaction.untrusted_text import visible

if TYPE_CHECKING:
    from bot.mcp.tools import McpTool
    from config.schema import Settings


def approve_tools(settings: Settings, name: str, *, yes: bool) -> None:
    """Show the tools of the server called `name` that are not off, and approve them if whoever reads says yes.

    Raises `SetupError`, `McpError`, `typer.Abort`.
    """
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
    if not yes:
        confirm(f"May people use {count(len(tools), 'tool')} of {name} as they are described here?")
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
