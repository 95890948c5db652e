"""Points discord.py at the real Discord, or at a local one for rehearsals.

discord.py keeps the two addresses as class attributes. Only this module sets them, once per process, before the first
client is created.
"""

from __future__ import annotations

import ssl
from email.utils import parsedate_to_datetime
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
# How long Discord may take to tell the time.
_TIME_TIMEOUT_S = 10.0


def point_at(settings: DiscordSettings) -> None:
    """Set the addresses that discord.py uses. Affects the whole process."""
    discord.http.Route.BASE = settings.api_base.rstrip("/") or _REAL_API
    DiscordWebSocket.DEFAULT_GATEWAY = _gateway(settings)


async def discord_time(settings: DiscordSettings) -> float:
    """Return what time it is by Discord's clock, in UTC epoch seconds. Raises `OSError` if it does not tell."""
    address = f"{settings.api_base.rstrip('/') or _REAL_API}/gateway"
    timeout = aiohttp.ClientTimeout(total=_TIME_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(connector=connector(settings), timeout=timeout) as http,
            http.head(address) as answer,
        ):
            return parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (aiohttp.ClientError, TimeoutError, LookupError, ValueError, SetupError) as error:
        raise OSError("Discord did not tell the time. Check the network and status.discord.com.") from error


def _gateway(settings: DiscordSettings) -> yarl.URL:
    if not settings.api_base:
        return _REAL_GATEWAY
    api = yarl.URL(settings.api_base)
    return api.with_scheme("wss" if api.scheme == "https" else "ws").with_path("/gateway")


def connector(settings: DiscordSettings) -> aiohttp.BaseConnector | None:
    """Return a connector that trusts a local Discord's certificate, or None for discord.py's default.

    Call it in the running event loop. The client owns the connector. Raises `SetupError`.
    """
    context = trusted_certificates(settings)
    return None if context is None else aiohttp.TCPConnector(ssl=context, limit=0)


def trusted_certificates(settings: DiscordSettings) -> ssl.SSLContext | None:
    """Return the certificates to trust, with a local Discord's; None if it has none. Raises `SetupError`."""
    if not settings.ca_file:
        return None
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise SetupError(
            f"discord.ca_file {settings.ca_file} is not a readable PEM certificate. "
            "Point it at the one that `roomtone rehearse --serve` prints, or leave it empty."
        ) from error
