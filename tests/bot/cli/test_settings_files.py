"""One line of the settings files is changed, and nothing else in them."""

from __future__ import annotations

import tomllib
from io import StringIO

import pytest
from dotenv import dotenv_values

from bot.cli.settings_files import with_setting, with_variable
from bot.errors import SetupError


@pytest.mark.parametrize(
    "text",
    [
        "",
        '# Mine.\n[brain]\nname = "Otto"\n',
        '[discord]\nrequire_e2ee = true\n\n[brain]\nname = "Otto"\n',
        '[discord]\n# Ours.\nguilds = [1, 2] # two\nrequire_e2ee = true\n[[mcp.servers]]\nname = "a"\n',
    ],
)
@pytest.mark.parametrize("value", [[1, 7], "http://[::1]:8/v1", ""])
def test_only_one_setting_changes(text: str, value: object) -> None:
    """Comments stay, and so does the order."""
    before, after = tomllib.loads(text), with_setting(text, "discord", "guilds", value)
    assert tomllib.loads(after) == {**before, "discord": {**before.get("discord", {}), "guilds": value}}
    assert [line for line in after.splitlines() if line.startswith("#")] == [
        line for line in text.splitlines() if line.startswith("#")
    ]


@pytest.mark.parametrize("text", ["[discord]\nguilds = [\n  1,\n]\n", "discord.guilds = [1]\n", "discord = {}\n"])
def test_what_is_written_otherwise_is_left_alone(text: str) -> None:
    """The line to add is told."""
    with pytest.raises(SetupError, match="guilds = "):
        with_setting(text, "discord", "guilds", [7])


@pytest.mark.parametrize(
    "text", ["", "# DISCORD_TOKEN=\nDISCORD_TOKEN=\n\nA = b # c\n", "export DISCORD_TOKEN='x'\nC=d"]
)
def test_only_one_variable_changes(text: str) -> None:
    """Comments stay, and so does the order."""
    after = with_variable(text, "DISCORD_TOKEN", "abc.def")
    assert dotenv_values(stream=StringIO(after)) == {**dotenv_values(stream=StringIO(text)), "DISCORD_TOKEN": "abc.def"}
    assert [line for line in after.splitlines() if "DISCORD_TOKEN=a" not in line] == [
        line for line in text.splitlines() if line.startswith("#") or "DISCORD_TOKEN" not in line
    ]
