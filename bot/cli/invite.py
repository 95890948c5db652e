"""`roomtone invite`: the link with which somebody invites the bot, and the servers that it serves."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.output import confirm, say
from bot.cli.settings_files import with_setting
from bot.discord.admission import invite_url
from bot.discord.endpoint import application_of, token_of
from bot.discord.permissions import PERMISSIONS
from bot.errors import SetupError
from bot.private_files import write_private_text
from config.load import load, settings_file

if TYPE_CHECKING:
    from pathlib import Path


def write_guild(file: Path, guild_id: int) -> None:
    """Add a server to `discord.guilds` in a settings file, which is made if there is none. Raises `SetupError`."""
    try:
        text = file.read_text("utf-8") if file.exists() else ""
        guilds = tomllib.loads(text).get("discord", {}).get("guilds", ())
        guilds = [*(each for each in guilds if each != guild_id), guild_id]
        write_private_text(file, with_setting(text, "discord", "guilds", guilds))
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{file} cannot be written: {error}. Add {guild_id} to discord.guilds yourself.") from error


def command(
    application: Annotated[
        int | None,
        typer.Option("--application", min=1, help="The application's id. Default: that of the bot's token."),
    ] = None,
    server: Annotated[
        int | None,
        typer.Option("--server", min=1, help="The server's id. It is added to discord.guilds, if you confirm."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Add the server without asking.")] = False,
) -> None:
    """Print the link that adds the bot to a server. It asks for the permissions that the bot uses and no others.

    A bot with discord.guilds leaves every other server, so write the id there first: --server does.
    """
    if server is not None:
        _serve(server, yes=yes)
    say(invite_url(application or _own_application(), server))
    say("\nOpen it in a browser. It asks for these permissions, and works with fewer:")
    for name, use in PERMISSIONS.values():
        say(f"  {name}: {use}")


def _serve(guild_id: int, *, yes: bool) -> None:
    """Add a server to the settings, if whoever runs the bot says yes."""
    if guild_id in load().discord.guilds:
        return
    file = settings_file()
    confirm(f"Shall the bot serve the server {guild_id}? It is written into discord.guilds in {file}.", yes=yes)
    write_guild(file, guild_id)
    if guild_id not in load().discord.guilds:
        raise SetupError(f"{file} has the server, but a variable sets discord.guilds too. Add {guild_id} there.")
    say(f"{file} has it now. A bot that runs reads it when it starts again.\n")


def _own_application() -> int:
    text = token_of(load().discord)
    found = application_of(text)
    if found is None:
        problem = "DISCORD_TOKEN is not a bot's token: copy it again" if text else "DISCORD_TOKEN is not set: set it"
        raise SetupError(
            f"{problem}, or give the application's id from the developer portal: roomtone invite --application ID."
        )
    return found
