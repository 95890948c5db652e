"""Joins one voice channel for a while and counts its packets, for `roomtone doctor --live`.

The people there are told before anything is counted. Everybody is treated like somebody who has opted out: no sound is
decrypted, decoded, kept or sent anywhere.
"""

from __future__ import annotations

import asyncio
import platform
import time
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

import discord

from bot.background_task import owned_task
from bot.channel.markdown import in_message
from bot.discord.connection import until_ready
from bot.discord.endpoint import connector, point_at, require_token
from bot.discord.posting import attempt
from bot.errors import SetupError
from bot.texts.text import Text, counted
from voice.transport.connection import CONNECT_TIMEOUT_S
from voice.transport.connector import Connector
from voice.transport.discord_gateway import DiscordMainGateway, VoiceChannel, check_entry
from voice.transport.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.settings import DiscordSettings
    from voice.transport.private.connection_state import ReceivingState

# Seconds between two looks at the connection. Keepalives leave when they are due.
_CHECK_S = 0.5
# Changes of a connection that a hostile server could make without end.
_MAX_CHANGES = 200
THANKS = Text("The test of the voice connection is over. Thank you.")
_VERSIONS = ("roomtone", "discord.py", "davey", "PyNaCl")


@dataclass(slots=True)
class _ConnectionRecord:
    """What became of the connection, for the file. The changes are `up` and `down`; if it did not last, the last one is
    `removed` (somebody took the bot out), `ended` (by the voice server) or `silent` (keepalives are answered no more).
    """

    started_at: float = field(default_factory=time.monotonic)
    changes: list[dict[str, Any]] = field(default_factory=list)
    round_trips_ms: list[float] = field(default_factory=list)

    def note(self, change: str, **more: Any) -> None:
        del self.changes[_MAX_CHANGES:]
        self.changes.append({"after_s": round(time.monotonic() - self.started_at, 1), "change": change, **more})

    async def watch(self, state: ReceivingState, *, seconds: float) -> None:
        """Keep the connection's path open for `seconds`, or until it is lost."""
        until = time.monotonic() + seconds
        noted: float | None = None
        while (left := until - time.monotonic()) > 0:
            is_open = not state.is_connected() or state.keep_path_open()
            await asyncio.sleep(min(left, _CHECK_S))
            round_trip_s = state.keepalive_round_trip_s
            if round_trip_s is not None and round_trip_s != noted:
                noted = round_trip_s
                self.round_trips_ms.append(round(1000 * round_trip_s, 1))
            if state.removed or state.over or not is_open:
                lost = "removed" if state.removed else "ended" if state.over else "silent"
                self.note(lost, close_code=state.close_code)
                return


async def probe_channel(
    settings: DiscordSettings, channel_id: int, *, seconds: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Join the channel for `seconds` and return the counts, as JSON. `say` gets a sentence for each step.

    Raises `SetupError` or `VoiceConnectionError` with a plain sentence.
    """
    # Before people are told: without the package's records nothing could be written down.
    token, versions = require_token(settings), _versions()
    point_at(settings)
    intents = discord.Intents(guilds=True, voice_states=True)
    async with (
        discord.Client(intents=intents, connector=connector(settings)) as client,
        owned_task(client.start(token), name="live-probe-client") as running,
    ):
        await until_ready(client.wait_until_ready(), running)
        channel = _channel(client, channel_id)
        say(f"Joining {channel.name} in {channel.guild.name} for {seconds:g} s.")
        noted = await _listened(client, channel, seconds=seconds)
    return {"versions": versions, "seconds": seconds, **noted}


def _channel(client: discord.Client, channel_id: int) -> VoiceChannel:
    """Return the channel, if the bot may enter it and is nowhere else there. Raises `SetupError` or
    `VoiceConnectionError`.
    """
    channel = client.get_channel(channel_id)
    if not isinstance(channel, VoiceChannel):
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


async def _listened(client: discord.Client, channel: VoiceChannel, *, seconds: float) -> dict[str, Any]:
    """Tell the people, join, wait, leave. Returns what was noted. Raises `SetupError` if they cannot be told, and
    `VoiceConnectionError`.
    """
    if not await _post(channel, notice(round(seconds))):
        raise SetupError(
            f"The people in {channel.name} could not be told of the test, so it was not made. Give the bot's role the "
            "permission Send Messages there."
        )
    record = _ConnectionRecord()
    receiver = Receiver(deliver=lambda _: None, heard_since=lambda _: None)
    voice = Connector(
        DiscordMainGateway(client, channel),
        receiver=receiver,
        on_state=lambda up: record.note("up" if up else "down"),
        paced_sender=None,
        timeout_s=CONNECT_TIMEOUT_S,
        require_e2ee=False,
    )
    try:
        await voice.connect()
        assert voice.client is not None
        connection = voice.client.connection
        end_to_end, mode = connection.end_to_end, connection.mode
        await record.watch(connection, seconds=seconds)
        return {
            "mode": mode,
            "end_to_end": end_to_end,
            "packets": receiver.counters().as_dict(),
            "connection": record.changes,
            "keepalive_round_trips_ms": record.round_trips_ms,
        }
    finally:
        await voice.retire()
        await _post(channel, THANKS)


def notice(seconds: int) -> Text:
    """Return what people read before the test."""
    return counted(
        seconds,
        "I am testing the voice connection for {count} second. I count the packets here. Nothing that is "
        "said is played, written down or kept.",
        "I am testing the voice connection for {count} seconds. I count the packets here. Nothing that is "
        "said is played, written down or kept.",
    )


async def _post(channel: VoiceChannel, text: Text) -> bool:
    """Post a sentence in the channel's chat, in the server's language. Returns whether Discord took it."""
    request = channel.send(in_message(text, channel.guild.preferred_locale.value))
    return await attempt(request, None, event="live_probe_not_announced") is not None


def _versions() -> dict[str, str]:
    libraries = {name: metadata.version(name) for name in _VERSIONS}
    return {"python": platform.python_version(), "system": platform.system(), **libraries}
