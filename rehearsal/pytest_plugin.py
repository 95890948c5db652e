"""A pytest plugin for people who test a voice bot: a local Discord with people who speak and hear.

`pytest_plugins = ["rehearsal.pytest_plugin"]` in `conftest.py` adds the fixture `local_discord`. docs/rehearsal.md has
an example. The bot is any client of discord.py, py-cord or disnake, unchanged; only its addresses and its certificate
differ. What is in `__all__` is public.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from rehearsal.discord.guild.spec import Channel, GuildSpec, Member, Role
from rehearsal.discord.interactions.result import InteractionResult
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import PersonError
from rehearsal.people.clip import Clip
from rehearsal.people.person import ScriptedPerson, scripted_member

__all__ = [
    "Channel",
    "DiscordForTests",
    "GuildSpec",
    "LocalPerson",
    "Member",
    "Role",
    "local_discord",
    "local_guild",
    "logged_in",
    "open_discord",
    "repointed",
]

# A busy machine needs so long to log a client in, or to agree on the keys of a call.
_PATIENCE_S = 60.0
# Bots pause between two sentences for less than this.
_QUIET_S = 1.0


class LocalPerson:
    """A person in a voice channel. `id`: their Discord id. `voice`: their voice client, for what is not here."""

    def __init__(self, voice: ScriptedPerson, local: LocalDiscord) -> None:
        self.id, self.name, self.voice = voice.user_id, voice.name, voice
        self._local = local
        self._hears_since = time.monotonic()

    async def say(self, sound: Path | str | Clip) -> None:
        """Say what a recording says, in real time, and return when it is over. Any format that FFmpeg reads will do."""
        clip = sound if isinstance(sound, Clip) else await asyncio.to_thread(Clip.load, Path(sound))
        await self.voice.say(clip)
        self._hears_since = time.monotonic()

    async def hear(self, member_id: int | None = None, *, timeout_s: float = _PATIENCE_S) -> NDArray[np.int16]:
        """Wait until somebody has spoken and is silent again, and return the sound: mono int16 at 16 kHz.

        `member_id`: who speaks; by default the first bot. Sound counts from the last call on, or from the end of what
        this person said. Raises `PersonError` when nobody speaks in time.
        """
        speaker = self._local.guild.bots[0].id if member_id is None else member_id
        since = self._hears_since
        await self.voice.wait_for_sound(speaker, since=since, timeout_s=timeout_s)
        await self.voice.wait_for_quiet(speaker, quiet_s=_QUIET_S, timeout_s=timeout_s)
        self._hears_since = time.monotonic()
        return self.voice.heard(speaker).pcm(since=since)

    async def use(self, command: str, **options: Any) -> InteractionResult:
        """Use a slash command, and return what the bot has answered. Subcommands are further words of the name."""
        return await self._local.invoke(self.id, command, options)


class DiscordForTests:
    """A local Discord for one test. `discord`: all of it (messages, buttons, faults, the network)."""

    def __init__(self, local: LocalDiscord) -> None:
        self.discord = local

    @contextlib.asynccontextmanager
    async def person(self, name: str, *, channel_id: int | None = None) -> AsyncIterator[LocalPerson]:
        """Let a member come into a voice channel, by default the first, until the block ends."""
        found = next((each for each in self.discord.guild.people if each.name == name), None)
        if found is None:
            there = ", ".join(each.name for each in self.discord.guild.people)
            raise PersonError(f"There is no {name} in the guild. Its people are {there}.")
        async with scripted_member(self.discord, found.id, channel_id=channel_id) as voice:
            yield LocalPerson(voice, self.discord)

    @contextlib.asynccontextmanager
    async def bot(self, client: Any, *, bot_id: int | None = None, token: str = "") -> AsyncIterator[None]:
        """Log a client of discord.py, py-cord or disnake in, and wait until it is ready. It is closed when the block
        ends.
        """
        async with logged_in(client, self.discord, token or f"{bot_id or self.discord.guild.bots[0].id}.test"):
            yield


@contextlib.contextmanager
def repointed(local: LocalDiscord, *, library: str = "discord") -> Iterator[None]:
    """Point a library at the local Discord, and restore its addresses afterwards.

    `library`: the name under which it is imported; discord.py and py-cord are both `discord`.
    """
    import yarl

    route = importlib.import_module(f"{library}.http").Route
    websocket = importlib.import_module(f"{library}.gateway").DiscordWebSocket
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(route, "BASE", local.api_base, raising=False)
        # py-cord's name for it.
        patch.setattr(route, "API_BASE_URL", local.api_base, raising=False)
        # discord.py does not ask for it.
        patch.setattr(websocket, "DEFAULT_GATEWAY", yarl.URL(local.gateway_url), raising=False)
        yield


@contextlib.asynccontextmanager
async def logged_in(client: Any, local: LocalDiscord, token: str) -> AsyncIterator[None]:
    """Log a client of discord.py, py-cord or disnake in and wait until it sees its guilds. It is closed when the block
    ends.

    Raises the library's own error if it cannot log in, and `TimeoutError` if it is not ready in time.
    """
    import aiohttp

    from voice.transport import opus

    library = next(each.__module__ for each in type(client).__mro__ if each.__name__ == "Client").partition(".")[0]
    library_opus = importlib.import_module(f"{library}.opus")
    if not library_opus.is_loaded():
        library_opus.load_opus(opus.library()._name)
    tls = ssl.create_default_context(cafile=str(local.certificate_path))
    with repointed(local, library=library):
        # The voice websocket has the certificate of the local Discord.
        client.http.connector = aiohttp.TCPConnector(ssl=tls)
        running = asyncio.create_task(client.start(token), name="bot-under-test")
        try:
            await _until_ready(client, running)
            yield
        finally:
            for voice in list(client.voice_clients):
                await voice.disconnect(force=True)
            await client.close()
            await asyncio.wait({running}, timeout=_PATIENCE_S)
            if running.done() and not running.cancelled():
                # py-cord fails as it ends, which says nothing about the bot.
                running.exception()


async def _until_ready(client: Any, running: asyncio.Task[None]) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        # On a busy machine a client is ready before it has got its guilds, and no event tells of the last.
        while not client.is_ready() or any(guild.unavailable for guild in client.guilds):
            if running.done():
                running.result()
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def open_discord(
    guild: GuildSpec | None = None, *, beside: DiscordForTests | None = None, response_timeout_s: float | None = None
) -> AsyncIterator[DiscordForTests]:
    """Open a local Discord on free ports of this machine until the block ends, as the fixture `local_discord` does.

    `beside`: the guild is another one of that Discord. `response_timeout_s`: how long a bot may take to answer a
    command (default: Discord's time).
    """
    first = None if beside is None else beside.discord
    async with LocalDiscord(guild=guild, beside=first, response_timeout_s=response_timeout_s) as local:
        yield DiscordForTests(local)


@pytest.fixture
def local_guild() -> GuildSpec:
    """The guild of `local_discord`: its channels, people and bots. Define this fixture anew for another guild."""
    return GuildSpec()


@pytest_asyncio.fixture
async def local_discord(local_guild: GuildSpec) -> AsyncIterator[DiscordForTests]:
    """A local Discord on free ports of this machine, for one test."""
    async with open_discord(local_guild) as opened:
        yield opened
