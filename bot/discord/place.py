"""A voice channel on Discord, as a room sees it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import discord
import structlog

from bot.place import Person
from voice.transport.link import VoiceLink

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from bot.place import FrameSource, Link

log = structlog.get_logger()

WRITE_TIMEOUT_S = 10.0
# Discord's own limit of a message.
MESSAGE_CHARS = 2000


class DiscordPlace:
    """One voice or stage channel, and the text channel its notices go to. Implements `bot.place.Place`."""

    def __init__(
        self, channel: discord.VoiceChannel | discord.StageChannel, text_channel: discord.abc.Messageable
    ) -> None:
        self._channel = channel
        self._text_channel = text_channel

    @property
    def guild_id(self) -> int:
        """Return the guild."""
        return self._channel.guild.id

    @property
    def channel_id(self) -> int:
        """Return the voice channel."""
        return self._channel.id

    @property
    def name(self) -> str:
        """Return the voice channel's name."""
        return self._channel.name

    def company(self) -> Sequence[Person]:
        """Return who is in the channel now, without the bot itself."""
        return [person_of(member) for member in self._channel.members if member.id != self._channel.guild.me.id]

    async def write(self, sentence: str) -> None:
        """Write into the text channel; a failure is logged and swallowed, because nothing depends on it."""
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await self._text_channel.send(sentence[:MESSAGE_CHARS], allowed_mentions=discord.AllowedMentions.none())
        except (discord.DiscordException, OSError, TimeoutError) as error:
            log.warning("message_not_written", channel_id=self._channel.id, error_class=type(error).__name__)

    def connect(self, source: FrameSource) -> AbstractAsyncContextManager[Link]:
        """Enter the channel, hear it, and speak `source` into it. Raises `LinkError`."""
        return VoiceLink.open(self._channel, source)


def person_of(member: discord.Member) -> Person:
    """Return a member as rooms know people."""
    return Person(member.id, member.display_name, member.bot)
