"""Every command of the bot, without what stands behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from discord import app_commands

from bot.discord.client import RoomtoneClient
from bot.settings import DiscordSettings
from bot.wiring.commands import slash_commands
from bot.wiring.settings import BotSettings
from config.schema import Settings
from tests.bot.discord.client import FakeRooms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bot.discord.client import AddCommands


class Missing:
    """Stands for the parts of a bot that is not there: it has every attribute, and none of them does anything."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing()


def all_command_adders() -> list[AddCommands]:
    """Return the functions that add all commands of the bot but those of the room. What stands behind them is missing,
    but for the bot's name.
    """
    parts, missing = cast("Any", Missing()), cast("Any", Missing())
    parts.settings, missing.names_of = BotSettings.from_schema(Settings()), lambda _: ("Jeeves",)
    return slash_commands(
        parts,
        missing,
        readable=missing,
        watching=missing,
        voice_commands=missing,
        posts=missing,
        webhooks=missing,
    )


def all_commands() -> Iterator[app_commands.Command[Any, ..., Any]]:
    """Yield all commands of the bot."""
    for command in RoomtoneClient(DiscordSettings(), FakeRooms(), all_command_adders()).tree.walk_commands():
        if isinstance(command, app_commands.Command):
            yield command
