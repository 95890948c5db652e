"""Joins one voice channel for a while and notes what its packets look like, for `roomtone doctor --live`.

The people there are told before anything is noted. Nothing that is said is decoded, kept or sent anywhere.
"""

from __future__ import annotations

import asyncio
import platform
from importlib import metadata
from typing import TYPE_CHECKING, Any

import aiohttp
import discord
import structlog

from bot.discord.endpoint import connector, point_at
from bot.errors import SetupError
from bot.texts.text import Text, in_language
from voice.errors import LinkError
from voice.transport.discord_gateway import DiscordMainGateway, VoiceChannel, check_entry
from voice.transport.header_recorder import HeaderRecorder
from voice.transport.link import CONNECT_TIMEOUT_S
from voice.transport.private.client import ReceivingClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.settings import DiscordSettings

_log = structlog.get_logger()

_LOGIN_TIMEOUT_S = 30.0
_LEAVE_TIMEOUT_S = 5.0
NOTICE = Text(
    "I am testing the voice connection for {seconds} seconds. I count and measure the packets here. "
    "Nothing that is said is played, written down or kept."
)
THANKS = Text("The test of the voice connection is over. Thank you.")
_VERSIONS = ("roomtone", "discord.py", "davey", "PyNaCl")


class _Client(discord.Client):
    """Tells when it knows its servers."""

    def __init__(self, settings: DiscordSettings) -> None:
        super().__init__(intents=discord.Intents(guilds=True, voice_states=True), connector=connector(settings))
        self.knows_guilds = asyncio.Event()

    async def on_ready(self) -> None:
        self.knows_guilds.set()


async def probe_channel(
    settings: DiscordSettings, channel_id: int, *, seconds: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Join the channel for `seconds` and return what was noted, as JSON. `say` gets a sentence for each step.

    Raises `SetupError` or `LinkError` with a plain sentence.
    """
    token = settings.token.get_secret_value() if settings.token is not None else ""
    if not token:
        raise SetupError(
            "DISCORD_TOKEN is not set, so no channel can be joined. `roomtone doctor` says where to get one."
        )
    point_at(settings)
    async with _Client(settings) as client:
        running = asyncio.create_task(client.start(token), name="live-probe-client")
        try:
            await _logged_in(client, running)
            channel = _channel(client, channel_id)
            say(f"Joining {channel.name} in {channel.guild.name} for {seconds:g} seconds.")
            recorder = await _listened(client, channel, seconds=seconds)
        finally:
            await client.close()
            running.cancel()
            await asyncio.wait([running])
    return {"format": 1, "versions": _versions(), **recorder.record()}


async def _logged_in(client: _Client, running: asyncio.Task[None]) -> None:
    ready = asyncio.create_task(client.knows_guilds.wait(), name="live-probe-ready")
    try:
        await asyncio.wait({ready, running}, timeout=_LOGIN_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ready.cancel()
    if running.done():
        try:
            running.result()
        except discord.LoginFailure as error:
            raise SetupError(
                "Discord refuses the token. Copy DISCORD_TOKEN again from the developer portal."
            ) from error
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            raise SetupError(
                f"Discord could not be reached ({type(error).__name__}). Check this machine's connection to the "
                "internet."
            ) from error
    if not client.knows_guilds.is_set():
        raise SetupError(f"Discord did not let the bot in within {_LOGIN_TIMEOUT_S:.0f} seconds.")


def _channel(client: discord.Client, channel_id: int) -> VoiceChannel:
    """Return the channel, if the bot may enter it and is nowhere else there. Raises `SetupError` or `LinkError`."""
    channel = client.get_channel(channel_id)
    if not isinstance(channel, discord.VoiceChannel | discord.StageChannel):
        raise SetupError(
            f"The bot sees no voice channel {channel_id}. Right-click the channel in Discord and copy its id "
            "(Settings, Advanced, Developer Mode), and look at the bot's permissions there."
        )
    if channel.guild.me.voice is not None:
        raise SetupError(
            f"The bot is in a voice channel of {channel.guild.name} already. Let it leave, or stop it first."
        )
    check_entry(channel)
    return channel


async def _listened(client: discord.Client, channel: VoiceChannel, *, seconds: float) -> HeaderRecorder:
    """Tell the people, join, wait, leave. Raises `LinkError`."""
    await _tell(channel, NOTICE.fill(seconds=round(seconds)))
    recorder = HeaderRecorder()
    voice = ReceivingClient(DiscordMainGateway(client, channel), receiver=recorder, on_state=lambda _: None)
    voice.connection.on_message = recorder.message
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S + _LEAVE_TIMEOUT_S):
            await voice.join(timeout_s=CONNECT_TIMEOUT_S)
        await asyncio.sleep(seconds)
    except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
        raise LinkError(
            "The voice server of {channel} could not be reached ({error}).",
            channel=channel.name,
            error=type(error).__name__,
        ) from error
    finally:
        await voice.retire(timeout_s=_LEAVE_TIMEOUT_S)
        await _tell(channel, THANKS)
    return recorder


async def _tell(channel: VoiceChannel, text: Text) -> None:
    """Post a sentence in the channel's chat, in the server's language. Without the permission nobody is told."""
    try:
        await channel.send(in_language(text, channel.guild.preferred_locale.value))
    except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
        _log.warning("live_probe_not_announced", error_class=type(error).__name__)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": platform.system()}
    for name in _VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found
