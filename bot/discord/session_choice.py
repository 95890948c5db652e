"""The option `session` of commands: which sessions somebody may choose, and which one a command is about."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from discord import app_commands

from bot.discord.answers import guild_id_of
from bot.discord.audience import nearest_channels, readable_channels
from bot.texts.text import Text
from compaction.errors import StoreError
from compaction.model import SessionId

if TYPE_CHECKING:
    from datetime import tzinfo

    import discord

    from bot.memory.session_reader import SessionReader
    from bot.store.sessions import SessionBegin, StoredSession

# The same for a session that does not exist and for one that the person may not read.
NO_SESSION = Text(
    "I know of no such session in a voice channel that you may enter. I tell of age-restricted channels only where you "
    "ask in one."
)
# Discord's limits for the name of a choice, and for the choices of an option.
_NAME_CHARS = 100
_MOST_CHOICES = 25


async def session_choices(
    interaction: discord.Interaction, typed: str, *, reader: SessionReader, zone: tzinfo
) -> list[app_commands.Choice[str]]:
    """Return the sessions that the person may read and whose day, time or channel has what they typed, newest first."""
    channels = readable_channels(interaction)
    try:
        found = await reader.readable(guild_id_of(interaction), channels)
    except StoreError:
        # Discord has no place for the reason here; the command itself gives it.
        return []
    named = [(_name_of(each, channels, zone), each.id) for each in found]
    fitting = [(name, key) for name, key in named if typed.casefold() in name.casefold()]
    return [app_commands.Choice(name=name, value=key) for name, key in fitting[:_MOST_CHOICES]]


def _name_of(session: SessionBegin, channels: dict[int, str], zone: tzinfo) -> str:
    # As in a file's name, so that it is the same in every language.
    begun = datetime.fromtimestamp(session.started_at, zone)
    return f"{begun:%Y-%m-%d %H:%M} · {channels.get(session.channel_id or 0, '')}"[:_NAME_CHARS]


async def chosen_session(
    interaction: discord.Interaction, wanted: str | None, *, reader: SessionReader
) -> StoredSession | None:
    """Return the session that the person chose, else the newest that they most likely mean. None: there is none that
    they may read. Raises `StoreError`.
    """
    return await reader.find(
        guild_id_of(interaction),
        readable_channels(interaction),
        session_id=None if wanted is None else SessionId(wanted),
        nearest=nearest_channels(interaction),
    )
