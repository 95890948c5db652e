"""`roomtone rehearse --serve`: keeps the local Discord up for a person with a microphone and for other clients, with
the bot in its voice channel.
"""

from __future__ import annotations

import asyncio
import shlex
import ssl
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

from bot import events
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import RehearsalError
from rehearsal.roomtone.companion import InProcessBot
from rehearsal.roomtone.microphone import MicrophonePage
from rehearsal.runner.local_environment import TOKEN, discord_addresses
from rehearsal.runner.ports import BotSetup
from rehearsal.runner.record import BotCrashed, LoggedProblem, Observation

# A served Discord may be empty for hours, and the bot must stay in the channel.
SERVED_SETTINGS: dict[str, object] = {"tuning.leave_when_empty_s": 86_400.0}


class Say(Protocol):
    """Prints a sentence for whoever started the command. `err`: it is a problem."""

    def __call__(self, text: str, *, err: bool = False) -> None: ...


async def serve_local_discord(
    overrides: Mapping[str, object],
    stop: asyncio.Event,
    *,
    with_bot: bool,
    port: int,
    network: Mapping[str, float],
    say: Say,
    on_dashboard: Callable[[str, Path], None],
) -> None:
    """Open the local Discord, print its addresses, and keep it up until `stop`.

    `overrides`: settings of the bot, its data folder among them. `network`: shares of packets (loss, padding, reorder)
    that replace the defaults. Raises `RehearsalError` if a server cannot listen or the bot crashes; and the bot's own
    errors if it cannot start.
    """
    crashes: list[BotCrashed] = []
    async with AsyncExitStack() as stack:
        discord = await stack.enter_async_context(LocalDiscord(http_port=port))
        discord.network.update(network)
        for line in addresses(discord):
            say(line)
        page = await stack.enter_async_context(MicrophonePage(discord))
        say(f"  data folder  {overrides['storage.data_dir']}   (--set storage.data_dir=FOLDER keeps it)")
        if with_bot:
            companion = await stack.enter_async_context(
                InProcessBot(SERVED_SETTINGS | dict(overrides), on_dashboard=on_dashboard)
            )

            def observe(seen: Observation) -> None:
                page.observe(seen)
                _show(seen, discord, crashes, stop, say)

            await companion.start(_setup(discord), observe)
            stack.push_async_callback(companion.stop)
            channel = discord.guild.voice_channels[0]
            await companion.enter(discord.guild.id, channel.id)
            say(f"{discord.guild.member(ROOMTONE_BOT_ID).name} is in {channel.name} and listening.")
        else:
            for line in own_bot(discord):
                say(line)
        say(f"Talk in your browser: {page.link}")
        say("Press Ctrl-C to stop it.")
        await stop.wait()
        if crashes:
            raise RehearsalError(f"The bot ended: {crashes[0].detail}")


def addresses(discord: LocalDiscord) -> list[str]:
    """Return the addresses and ids of the local Discord, one line each."""
    guild = discord.guild
    voice = guild.voice_channels[0]
    members = ", ".join(f"{member.id} {member.name}" for member in guild.people)
    return [
        "A local Discord is up, for this machine only.",
        f"  REST API     {discord.api_base}",
        f"  gateway      {discord.gateway_url}",
        f"  voice        wss://{discord.voice_endpoint}",
        f"  certificate  {discord.certificate_path}",
        f"  control API  {discord.control_base}   (docs/rehearsal.md)",
        f"  bot token    {TOKEN}",
        f"  guild        {guild.id} {guild.name}",
        f"  channels     {voice.id} {voice.name} (voice), {guild.text_channel.id} {guild.text_channel.name} (text)",
        f"  members      {members}",
        f"  for example  curl -X POST {discord.control_base}/members/{guild.people[0].id}/join",
    ]


def own_bot(discord: LocalDiscord) -> list[str]:
    """Return the command with which a Roomtone of one's own comes here instead of to Discord."""
    variables = {
        "SSL_CERT_FILE": _trusted(discord.certificate_path),
        "DISCORD_TOKEN": TOKEN,
        "ROOMTONE_DISCORD__API_BASE": discord.api_base,
    }
    # This program may not be on the path.
    run = shlex.join([sys.executable, "-m", "bot", "run"])
    command = " ".join([*(f"{name}={value}" for name, value in variables.items()), run])
    return ["No bot is here yet. This command comes here instead of to Discord:", f"  {command}"]


def _trusted(certificate: Path) -> Path:
    """Return a file with `certificate` and those that this machine trusts: the bot may use endpoints elsewhere too."""
    usual = ssl.get_default_verify_paths().cafile
    file = certificate.with_name("trusted.pem")
    file.write_bytes(certificate.read_bytes() + (Path(usual).read_bytes() if usual else b""))
    return file


def _setup(discord: LocalDiscord) -> BotSetup:
    name = discord.guild.member(ROOMTONE_BOT_ID).name
    return BotSetup(discord_addresses(discord, TOKEN), bot_name=name, settings={})


def _show(seen: Observation, discord: LocalDiscord, crashes: list[BotCrashed], stop: asyncio.Event, say: Say) -> None:
    """Print what the bot hears and says, and its problems. If it crashes, stop everything."""
    match seen:
        case events.UtteranceTranscribed():
            say(f"{discord.guild.member(seen.speaker_id).name}: {seen.text}")
        case events.ReplySpoken():
            say(f"{discord.guild.member(ROOMTONE_BOT_ID).name}: {seen.text}")
        case LoggedProblem():
            say(f"{seen.level}: {seen.event} {seen.detail}".rstrip(), err=True)
        case BotCrashed():
            crashes.append(seen)
            stop.set()
