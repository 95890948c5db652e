"""A server is added to the settings file, and nothing else in it changes."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from bot.cli.invite import with_guild, write_guild
from bot.errors import SetupError
from config.load import load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "guilds"),
    [
        ("", [7]),
        ('# Mine.\n[brain]\nname = "Otto"\n', [7]),
        ('[discord]\nrequire_e2ee = true\n\n[brain]\nname = "Otto"\n', [7]),
        ('[discord]\n# Ours.\nguilds = [1, 2] # two\nrequire_e2ee = true\n[[mcp.servers]]\nname = "a"\n', [1, 2, 7]),
        ("[discord]\nguilds = [7]\n", [7]),
    ],
)
def test_only_the_list_of_servers_changes(text: str, guilds: list[int]) -> None:
    """Comments stay, and so does the order."""
    before, after = tomllib.loads(text), with_guild(text, 7)
    section = before.get("discord", {})
    assert tomllib.loads(after) == {**before, "discord": {**section, "guilds": guilds}}
    assert [line for line in after.splitlines() if line.startswith("#")] == [
        line for line in text.splitlines() if line.startswith("#")
    ]


@pytest.mark.parametrize("text", ["[discord]\nguilds = [\n  1,\n]\n", "discord.guilds = [1]\n", "discord = {}\n"])
def test_what_is_written_otherwise_is_left_alone(text: str) -> None:
    """The line to add is told."""
    with pytest.raises(SetupError, match="guilds = "):
        with_guild(text, 7)


def test_the_bot_reads_what_was_written(tmp_path: Path) -> None:
    """A file that is not there is made, for its owner alone."""
    file = tmp_path / "roomtone.toml"
    write_guild(file, 500)
    assert load(directory=tmp_path, environ={}).discord.guilds == (500,)
    assert file.stat().st_mode & 0o077 == 0
