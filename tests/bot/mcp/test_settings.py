"""Settings of MCP servers: each has either a command or a URL, names are unique, and no secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from bot.mcp.settings import McpServerSettings, McpSettings
from config import ConfigError
from config.load import load

FILES = {"name": "files", "command": "uvx", "headers": {}, "env": {"KEY": "sk-secret"}}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"name": "x"}, "either"),
        ({"name": "x", "command": "a", "url": "http://b"}, "either"),
        ({"name": "x", "url": "ftp://b"}, "http"),
        ({"name": "X y", "command": "a"}, "pattern"),
        # Its tool 'read' would have the name of 'old_read' of a server called notes.
        ({"name": "notes_old", "command": "a"}, "pattern"),
        ({"name": "x", "command": "a", "tools": {"read": "always"}}, "never ask"),
    ],
)
def test_what_is_wrong_is_told(values: dict[str, object], told: str) -> None:
    """Wrong settings are refused with a message that says what is wrong."""
    with pytest.raises(ValidationError, match=told):
        McpServerSettings.model_validate(values)


def test_names_differ() -> None:
    """Two servers cannot have the same name, because the name distinguishes their tools."""
    with pytest.raises(ValidationError, match="'files'"):
        McpSettings.model_validate({"servers": [FILES, FILES]})


def test_they_are_read_from_a_file(tmp_path: Path) -> None:
    """Each server is a table in roomtone.toml, and an error message about it contains none of its secrets."""
    file = tmp_path / "roomtone.toml"
    file.write_text(
        '[[mcp.servers]]\nname = "files"\ncommand = "uvx"\nargs = ["mcp-server-files"]\nguilds = [500]\n'
        'roles = ["everyone", 7]\nenv = { KEY = "sk-secret" }\ntools = { read_file = "never ask" }\n\n'
        '[[mcp.servers]]\nname = "hub"\nurl = "https://hub.example/mcp"\n[discord]\nguilds = [500]\n',
        "utf-8",
    )
    settings = load(directory=tmp_path, environ={})
    assert [server.name for server in settings.mcp.servers] == ["files", "hub"]
    assert settings.mcp.servers[0].env["KEY"].get_secret_value() == "sk-secret"
    assert settings.mcp.servers[0].use_of("read_file") == "never ask"
    assert "sk-secret" not in repr(settings)
    file.write_text('[[mcp.servers]]\nname = "files"\nenv = { KEY = "sk-secret" }\n', "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(directory=tmp_path, environ={})
    assert "mcp.servers in roomtone.toml" in str(caught.value)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(("discord", "told"), [("", "discord.guilds must name"), ("[discord]\nguilds = [7]\n", "500")])
def test_a_bot_with_tools_names_its_servers(discord: str, told: str, tmp_path: Path) -> None:
    """Otherwise a stranger's server, of which an owner is a plain member, is served with the operator's tools."""
    server = '[[mcp.servers]]\nname = "files"\ncommand = "uvx"\nguilds = [500]\n'
    (tmp_path / "roomtone.toml").write_text(discord + server, "utf-8")
    with pytest.raises(ConfigError, match=told):
        load(directory=tmp_path, environ={})
