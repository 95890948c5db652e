"""The option `session` of commands: which sessions somebody may choose, and which one a command is about."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from discord import app_commands

from bot.discord.audience import channel_name, nearest_channels
from bot.texts.text import Text
from compaction.errors import StoreError
from compaction.model import SessionId

if TYPE_CHECKING:
    from datetime import tzinfo

    import discord

    from bot.memory.session_reader import SessionReader
    from bot.readers import Reader
    from bot.store.sessions import SessionBegin, StoredSession

# The same for a session that does not exist and for one that the person may not read.
NO_SESSION = Text(
    "I know of no such session that you may read: I show people what was said while they were in the channel. I tell "
    "of age-restricted channels only where you ask in one."
)
# Discord's limits for the name of a choice, and for the choices of an option.
_NAME_CHARS = 100
_MOST_CHOICES = 25


async def session_choices(
    interaction: discord.Interaction, typed: str, person: Reader, *, reader: SessionReader, zone: tzinfo
) -> list[app_commands.Choice[str]]:
    """Return the sessions of which `person` may read something, newest first: those whose day, time or channel has what
    they typed.
    """
    try:
        found = await reader.readable(person)
    except StoreError:
        # Discord has no place for the reason here; the command itself gives it.
        return []
    named = [(_name_of(each, channel_name(interaction, each.channel_id), zone), each.id) for each in found]
    fitting = [(name, key) for name, key in named if typed.casefold() in name.casefold()]
    return [app_commands.Choice(name=name, value=key) for name, key in fitting[:_MOST_CHOICES]]


def _name_of(session: SessionBegin, channel: str, zone: tzinfo) -> str:
    # As in a file's name, so that it is the same in every language.
    begun = datetime.fromtimestamp(session.started_at, zone)
    return f"{begun:%Y-%m-%d %H:%M} · {channel}"[:_NAME_CHARS]


async def chosen_session(
    interaction: discord.Interaction, wanted: str | None, person: Reader, *, reader: SessionReader
) -> StoredSession | None:
    """Return the session that `person` chose, else the newest that they most likely mean. None: there is none of which
    they may read anything. Raises `StoreError`.
    """
    return await reader.find(
        person,
        session_id=None if wanted is None else SessionId(wanted),
        nearest=nearest_channels(interaction),
    )
