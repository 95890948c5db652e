"""Writes a Discord server into the operator's settings file: its id into `discord.guilds`, and nothing else."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from bot.errors import SetupError
from bot.private_files import write_private_text

if TYPE_CHECKING:
    from pathlib import Path


def write_guild(file: Path, guild_id: int) -> None:
    """Add a server to `discord.guilds` in a settings file, which is made if there is none. Raises `SetupError`."""
    try:
        text = file.read_text("utf-8") if file.exists() else ""
        write_private_text(file, with_guild(text, guild_id))
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{file} cannot be written: {error}. Add {guild_id} to discord.guilds yourself.") from error


def with_guild(text: str, guild_id: int) -> str:
    """Return a settings file with the server in it, and otherwise unchanged. Pure.

    Raises `SetupError` for one that is written in another way than line by line.
    """
    before = tomllib.loads(text)
    section = before.get("discord", {})
    guilds = [*(each for each in section.get("guilds", ()) if each != guild_id), guild_id]
    line = f"guilds = {guilds}"
    lines = text.splitlines()
    header = next((at for at, each in enumerate(lines) if each.strip() == "[discord]"), None)
    if header is None:
        lines += [*[""] * bool(lines), "[discord]", line]
    else:
        rest = range(header + 1, len(lines))
        end = next((at for at in rest if lines[at].lstrip().startswith("[")), len(lines))
        old = next((at for at in range(header + 1, end) if lines[at].split("=")[0].strip() == "guilds"), None)
        lines[header + 1 if old is None else old : header + 1 if old is None else old + 1] = [line]
    after = "\n".join(lines) + "\n"
    try:
        is_right = tomllib.loads(after) == {**before, "discord": {**section, "guilds": guilds}}
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise SetupError(f"I cannot add the server to your settings. Write it there yourself, below [discord]: {line}")
    return after
