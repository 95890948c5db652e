"""Which Discord the bot talks to: the real one, or a local one for rehearsals.

discord.py keeps these two addresses as class attributes; they are repointed here and nowhere else, once a
process, before the first client is made.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket

from bot.errors import SetupError

if TYPE_CHECKING:
    from bot.settings import DiscordSettings

_REAL_API = discord.http.Route.BASE
_REAL_GATEWAY = DiscordWebSocket.DEFAULT_GATEWAY


def point_at(settings: DiscordSettings) -> None:
    """Let discord.py talk to the Discord that `settings` name. Affects the whole process."""
    discord.http.Route.BASE = settings.api_base.rstrip("/") or _REAL_API
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(settings.gateway) if settings.gateway else _REAL_GATEWAY


def connector(settings: DiscordSettings) -> aiohttp.BaseConnector | None:
    """Return the connector that trusts a local Discord's certificate, or None for discord.py's own.

    Call it on the running loop; the client owns what it returns. Raises `SetupError`.
    """
    if not settings.ca_file:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise SetupError(
            f"discord.ca_file {settings.ca_file} is not a readable PEM certificate. "
            "Point it at the one that `roomtone rehearse --serve` prints, or leave it empty."
        ) from error
    return aiohttp.TCPConnector(ssl=context, limit=0)
