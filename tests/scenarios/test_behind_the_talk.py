"""A call of an MCP server that takes longer than an answer waits, while people talk on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bot.mcp.servers import list_server_tools
from bot.mcp.settings import McpServerSettings
from bot.mcp.tools import Approvals, digest
from config.problems import toml_value
from tests.scenarios.program import REPOSITORY, Program

pytestmark = pytest.mark.rehearsal

SCENARIO = REPOSITORY / "tests" / "scenarios" / "behind-the-talk.toml"
# The server of every rehearsal.
GUILD_ID = 500
SERVER = {
    "name": "desk",
    "command": sys.executable,
    "args": [str(REPOSITORY / "tests" / "bot" / "mcp" / "server.py")],
    "guilds": [GUILD_ID],
    "roles": ["everyone"],
}


async def test_people_talk_on_and_are_told_what_came_of_it(tmp_path: Path) -> None:
    """The first answer says that it goes on, and so does the chat. Ben's words between are a turn. Then everybody hears
    what the tool found.
    """
    data = tmp_path / "data"
    settings = McpServerSettings.model_validate(SERVER)
    approvals = Approvals(data)
    approvals.approve("desk", map(digest, await list_server_tools(settings, approvals)))
    server = toml_value([{**SERVER, "tools": {"research": "never ask"}}])
    changed = (f"mcp.servers={server}", f"discord.guilds=[{GUILD_ID}]", f'storage.data_dir="{data}"')
    words = [word for each in changed for word in ("--set", each)]
    outcome = Program.rehearse(tmp_path, str(SCENARIO), *words).wait()
    assert outcome.status == 0, outcome.printed
    first, *others = outcome.report["bot_turns"]
    assert "tell you the result" in first["text"]
    assert "golden" in others[-1]["heard_by_others"].lower()
    assert others[-1]["at_s"] > outcome.report["utterances"][-1]["started_s"] > first["at_s"]
    posted = " ".join(outcome.report["messages"])
    assert "Ada: research" in posted
    assert "I did this for Ada." in posted
    assert "blue door" not in posted
