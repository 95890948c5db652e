"""`roomtone invite`: the link with which somebody invites the bot."""

from __future__ import annotations

from typing import Annotated

import typer

from bot.cli.output import say
from bot.discord.admission import invite_url
from bot.discord.endpoint import application_of, token_of
from bot.discord.permissions import PERMISSIONS
from bot.errors import SetupError
from config.load import load


def command(
    application: Annotated[
        int | None,
        typer.Option("--application", min=1, help="The application's id. Default: that of the bot's token."),
    ] = None,
) -> None:
    """Print the link that adds the bot to a server. It asks for the permissions that the bot uses and no others.

    A bot leaves a server that it does not serve: `roomtone servers admit` lets it serve one.
    """
    say(invite_url(application or _own_application()))
    say("\nOpen it in a browser. It asks for these permissions, and works with fewer:")
    for name, use in PERMISSIONS.values():
        say(f"  {name}: {use}")


def _own_application() -> int:
    text = token_of(load().discord)
    found = application_of(text)
    if found is None:
        problem = "DISCORD_TOKEN is not a bot's token: copy it again" if text else "DISCORD_TOKEN is not set: set it"
        raise SetupError(
            f"{problem}, or give the application's id from the developer portal: roomtone invite --application ID."
        )
    return found
