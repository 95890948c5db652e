"""`roomtone invite`: the link with which somebody invites the bot."""

from __future__ import annotations

from bot.cli.output import say
from bot.discord.admission import invite_url
from bot.discord.endpoint import application_of, token_of
from bot.discord.permissions import PERMISSIONS
from bot.errors import SetupError
from config.load import load


def command() -> None:
    """Print the link that adds the bot to a server. It asks for the permissions that the bot uses and no others.

    A bot leaves a server that it does not serve: `roomtone servers admit` lets it serve one.
    """
    token = token_of(load().discord)
    application = application_of(token)
    if application is None:
        raise SetupError(
            "DISCORD_TOKEN is not a bot's token: copy it again." if token else "DISCORD_TOKEN is not set: set it."
        )
    say(invite_url(application))
    say("\nOpen it in a browser. It asks for these permissions, and works with fewer:")
    for name, use in PERMISSIONS.values():
        say(f"  {name}: {use}")
