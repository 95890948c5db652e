"""Unmodified ("stock") discord.py 2.7.1 in the local Discord.

Only its two addresses and the trusted certificate are changed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import discord
from discord import app_commands

from rehearsal.discord import LocalDiscord
from rehearsal.pytest_plugin import logged_in, repointed
from tests.patience import PATIENCE_S, settle

__all__ = ["CONNECT_S", "StockBot", "Tone", "connect", "repointed", "stock_bot", "until"]

# discord.py's limit for each step of joining, after which it would try again.
CONNECT_S = 60.0
_SAMPLES = 960
_RATE_HZ = 48_000


class StockBot(discord.Client):
    """A discord.py client with a command tree, which registers its commands when it logs in."""

    def __init__(self, **options: Any) -> None:
        # Without this setting, discord.py waits two seconds for more guilds, and none come.
        super().__init__(intents=discord.Intents.default(), guild_ready_timeout=0.1, **options)
        self.tree = app_commands.CommandTree(self)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Begin a new session at once: discord.py would wait for five seconds."""

    async def setup_hook(self) -> None:
        """Register the commands, as most bots do."""
        if self.tree.get_commands():
            await self.tree.sync()


@contextlib.asynccontextmanager
async def stock_bot(
    local: LocalDiscord, bot_id: int, *, prepare: Callable[[StockBot], None] | None = None, token: str = ""
) -> AsyncIterator[StockBot]:
    """Log in with an unmodified client and wait until it is ready. The client is closed afterwards."""
    client = StockBot()
    if prepare is not None:
        prepare(client)
    async with logged_in(client, local, token or f"{bot_id}.test"):
        yield client


async def connect(client: StockBot, channel_id: int = 600) -> discord.VoiceClient:
    """Join a voice channel."""
    channel = client.get_channel(channel_id)
    assert isinstance(channel, discord.VoiceChannel)
    return await channel.connect(timeout=CONNECT_S)


async def until(condition: Callable[[], object], what: str = "it") -> None:
    """Poll until `condition` holds. Another client's state cannot be awaited."""
    try:
        await settle(condition)
    except TimeoutError:
        raise AssertionError(f"{what} did not happen within {PATIENCE_S:g} s") from None


class Tone(discord.AudioSource):
    """A sine tone as PCM. discord.py encodes, encrypts and paces it."""

    def __init__(self, seconds: float, *, hertz: float = 440.0) -> None:
        self._frames = int(seconds * _RATE_HZ / _SAMPLES)
        self._hertz = hertz
        self._frame = 0

    def read(self) -> bytes:
        """Return the next 20 ms of PCM, or nothing at the end."""
        if self._frame >= self._frames:
            return b""
        start = self._frame * _SAMPLES
        self._frame += 1
        turn = 2 * math.pi * self._hertz / _RATE_HZ
        samples = (round(9000 * math.sin(turn * (start + index))) for index in range(_SAMPLES))
        return b"".join(2 * sample.to_bytes(2, "little", signed=True) for sample in samples)

    def is_opus(self) -> bool:
        """Return False, because the tone is PCM."""
        return False
