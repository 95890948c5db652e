"""A local Discord with some of the bot's slash commands, and what people are answered there."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.discord.connection import connected
from bot.participation.guild_state import GuildStates, OptOuts
from bot.participation.settings import ParticipationSettings
from bot.server_settings import ServerSettingsBook, ServerSettingsStore
from rehearsal.pytest_plugin import open_discord
from tests.bot.discord.client import FakeRooms, settings_for
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.discord.client import AddCommands
    from rehearsal.discord.guild.spec import GuildSpec
    from rehearsal.discord.interactions.result import InteractionReply
    from rehearsal.discord.server import LocalDiscord


@asynccontextmanager
async def server_with(command: AddCommands, guild: GuildSpec | None = None) -> AsyncIterator[LocalDiscord]:
    """Start a local Discord with the bot's client and the commands that `command` adds."""
    async with open_discord(guild) as opened, connected(settings_for(opened.discord), FakeRooms(), [command]):
        yield opened.discord


async def private_reply(local: LocalDiscord, user_id: int, command: str, **options: object) -> InteractionReply:
    """Use a command, and return the answer, which only this person sees."""
    result = await local.invoke(user_id, command, options)
    await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
    (reply,) = result.replies
    assert reply.ephemeral
    return reply


async def answer_to(local: LocalDiscord, user_id: int, command: str, **options: object) -> str:
    """Use a command, and return what the answer says, which only this person sees."""
    return (await private_reply(local, user_id, command, **options)).content


def participation_with(stored: ServerSettingsStore, opt_outs: OptOuts) -> GuildStates:
    """Return the participation of a bot that was just started on these stores."""
    servers = ServerSettingsBook(stored)
    return GuildStates(servers, opt_outs, ParticipationSettings(), wake_names=("Roomtone",), clock=FakeClock())
