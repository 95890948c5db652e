"""The way to Discord: the bot's token and intents, the address and certificates of the real Discord or of a local one
for rehearsals, and what time it is there.

discord.py keeps the two addresses as class attributes. Only this module sets them, once per process, before the first
client is created.
"""

from __future__ import annotations

import base64
import binascii
import re
import ssl
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import discord
import structlog
import yarl
from discord.gateway import DiscordWebSocket, KeepAliveHandler, ReconnectWebSocket

from bot.errors import SetupError
from bot.settings import DiscordSettings, RehearsedDiscordSettings

log = structlog.get_logger()

COPY_AGAIN = "Copy it again from the Bot page of the developer portal (Reset Token) into DISCORD_TOKEN."

_TOKEN = re.compile(r"([\w-]{20,})\.([\w-]{5,})\.([\w-]{20,})", re.ASCII)
# What else people copy from the developer portal: the pages General Information and OAuth2 have these.
_OTHER_THINGS = (
    (re.compile(r"\d{17,20}", re.ASCII), "It looks like the application's id."),
    (re.compile(r"[0-9a-f]{64}"), "It looks like the application's public key."),
    (re.compile(r"[\w-]{32}", re.ASCII), "It looks like the application's client secret."),
    (re.compile(r"Bot\s.*", re.DOTALL), "It begins with the word Bot, which is no part of it."),
)


def require_token(settings: DiscordSettings) -> str:
    """Return the bot's token. Raises `SetupError` if there is none, or if its form is wrong."""
    token = token_of(settings)
    if not token:
        raise SetupError("There is no bot token. Set DISCORD_TOKEN (or discord.token), see `roomtone doctor`.")
    fault = form_fault(settings)
    if fault is not None:
        raise SetupError(f"{fault} {COPY_AGAIN}")
    return token


def token_of(settings: DiscordSettings) -> str:
    """Return the token without blanks around it; empty if there is none."""
    return "" if settings.token is None else settings.token.get_secret_value().strip()


def form_fault(settings: DiscordSettings) -> str | None:
    """Return in sentences why the text cannot be a token, never with the text; None if it has the form of one.

    A local Discord (`discord.api_base`) takes any.
    """
    token = token_of(settings)
    match = _TOKEN.fullmatch(token)
    if settings.api_base or (match is not None and application_of(match[1]) is not None):
        return None
    fault = "DISCORD_TOKEN has not the form of a bot's token (three parts joined by dots)."
    guess = next((guess for form, guess in _OTHER_THINGS if form.fullmatch(token)), None)
    return fault if guess is None else f"{fault} {guess}"


def application_of(token: str) -> int | None:
    """Return the application's id, which the first part of a bot's token is in base64; None if it is no such token."""
    first = token.strip().split(".")[0]
    try:
        number = base64.b64decode(first + "=" * (-len(first) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    return int(number) if number.isdecimal() and len(number) <= 20 else None


_REAL_API = discord.http.Route.BASE
_REAL_GATEWAY = DiscordWebSocket.DEFAULT_GATEWAY
# What Discord asks of bots: a library with its address and version. discord.py says the same of its own requests.
USER_AGENT = f"DiscordBot (https://github.com/Rapptz/discord.py, {discord.__version__})"
# How long Discord may take to answer.
_ASK_TIMEOUT_S = 10.0
# The answer to a heartbeat comes right after it; a busy machine sends the next one a little late.
_HEARTBEAT_SLACK_S = 1.0


class PromptKeepAlive(KeepAliveHandler):
    """Takes a gateway for dead that has not answered the last heartbeat. discord.py waits until nothing has come for a
    minute, which it finds with the next heartbeat but one.
    """

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        if self.interval is not None:
            self.heartbeat_timeout = self.interval + _HEARTBEAT_SLACK_S


# The session is over: invalid sequence, and timed out (Discord's reference, "Gateway close event codes").
_SESSION_OVER = frozenset({4007, 4009})


class PromptWebSocket(DiscordWebSocket):
    """Begins a new session at once where the close code says that the old one is over. discord.py would resume it, be
    refused, and wait. Logs why it ended.
    """

    async def poll_event(self) -> None:
        try:
            await super().poll_event()
        except ReconnectWebSocket as error:
            log.info("gateway_closed", shard=self.shard_id or 0, close_code=self.socket.close_code)
            if self.socket.close_code in _SESSION_OVER:
                raise ReconnectWebSocket(self.shard_id, resume=False) from error
            raise


class IntentsClient(discord.Client):
    """discord.py's client with the bot's intents. `options`: see `discord.Client`."""

    def __init__(self, **options: Any) -> None:
        self._asked_for = discord.Intents(
            guilds=True, voice_states=True, guild_messages=True, guild_scheduled_events=True
        )
        super().__init__(intents=self._asked_for, **options)

    async def setup_hook(self) -> None:
        # The only privileged intent, which the application's owner allows in the developer portal or does not. Discord
        # would refuse a bot that asks for it in vain.
        flags = self.application_flags
        self._asked_for.message_content = flags.gateway_message_content or flags.gateway_message_content_limited


async def name_itself(_session: object, _context: object, started: aiohttp.TraceRequestStartParams) -> None:
    """Give a request the name of a bot: discord.py gives its answers to interactions none. Part of a client's trace."""
    started.headers["User-Agent"] = USER_AGENT


def point_at(settings: DiscordSettings) -> None:
    """Set discord.py's addresses, and how soon it gives up a gateway or a session, for the whole process."""
    discord.gateway.KeepAliveHandler = PromptKeepAlive  # type: ignore[misc]
    discord.client.DiscordWebSocket = discord.shard.DiscordWebSocket = PromptWebSocket  # type: ignore[misc]
    discord.http.Route.BASE = settings.api_base.rstrip("/") or _REAL_API
    DiscordWebSocket.DEFAULT_GATEWAY = _REAL_GATEWAY
    if settings.api_base:
        api = yarl.URL(settings.api_base)
        scheme = "wss" if api.scheme == "https" else "ws"
        DiscordWebSocket.DEFAULT_GATEWAY = api.with_scheme(scheme).with_path("/gateway")


async def discord_time(settings: DiscordSettings) -> float:
    """Return what time it is by Discord's clock, in UTC epoch seconds. Raises `OSError` if it does not tell."""
    address = f"{settings.api_base.rstrip('/') or _REAL_API}/gateway"
    timeout = aiohttp.ClientTimeout(total=_ASK_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector(settings), timeout=timeout, headers={"User-Agent": USER_AGENT}
            ) as http,
            http.head(address) as answer,
        ):
            return parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (aiohttp.ClientError, TimeoutError, LookupError, ValueError, SetupError) as error:
        raise OSError("Discord did not tell the time. Check the network and status.discord.com.") from error


def connector(settings: DiscordSettings) -> aiohttp.BaseConnector | None:
    """Return a connector that trusts the certificate of a rehearsal's Discord, or None for discord.py's default, which
    trusts what the machine does (or SSL_CERT_FILE names).

    Call it in the running event loop. The client owns the connector.
    """
    if not isinstance(settings, RehearsedDiscordSettings):
        return None
    return aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=settings.certificate), limit=0)
