"""Implements `bot.channel.port.Chat` for Discord: reads posted files and posts messages.

Without the message content intent (discord.message_content), Discord shows a bot only the files of messages that
mention it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import discord

from bot.channel.port import ChatError, DroppedFile

if TYPE_CHECKING:
    from collections.abc import Sequence

# Messages of each channel that are searched for files.
MOST_MESSAGES = 50
TIMEOUT_S = 8.0
# Discord's limit for one message.
MESSAGE_CHARS = 2000

_NO_RIGHT = "I may not {what} in this channel's chat. Give me the right {right} there."
_FAILED = "Discord did not let me {what} in this channel's chat just now. Try again."


class DiscordChat:
    """The chat of a voice channel, and the text channel for notices, which may be the same."""

    def __init__(self, voice_channel: discord.abc.Messageable, text_channel: discord.abc.Messageable) -> None:
        self._text_channel = text_channel
        self._channels = (voice_channel,) if voice_channel is text_channel else (voice_channel, text_channel)
        # The files listed last, by id.
        self._attachments: dict[int, discord.Attachment] = {}

    async def files(self, *, most: int) -> Sequence[DroppedFile]:
        found: dict[int, tuple[DroppedFile, discord.Attachment]] = {}
        try:
            async with asyncio.timeout(TIMEOUT_S):
                for channel in self._channels:
                    async for message in channel.history(limit=MOST_MESSAGES):
                        for attachment in message.attachments:
                            found[attachment.id] = (_dropped(message, attachment), attachment)
        except (discord.DiscordException, OSError, TimeoutError) as error:
            raise _translated(error, "read what people dropped", "Read Message History") from error
        newest = sorted(found.values(), key=lambda each: each[0].at, reverse=True)[:most]
        self._attachments = {file.id: attachment for file, attachment in newest}
        return [file for file, _ in newest]

    async def fetch(self, file: DroppedFile, *, max_bytes: int) -> bytes:
        attachment = self._attachments.get(file.id)
        if attachment is None or attachment.size > max_bytes:
            raise ChatError(f"{file.name} was deleted, or is too large to read.")
        try:
            async with asyncio.timeout(TIMEOUT_S):
                content = await attachment.read()
        except (discord.DiscordException, OSError, TimeoutError) as error:
            raise _translated(error, f"read {file.name}", "Read Message History") from error
        if len(content) > max_bytes:
            raise ChatError(f"{file.name} is larger than Discord says.")
        return content

    async def post(self, text: str) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._text_channel.send(text[:MESSAGE_CHARS], allowed_mentions=discord.AllowedMentions.none())
        except (discord.DiscordException, OSError, TimeoutError) as error:
            raise _translated(error, "write", "Send Messages") from error


def _dropped(message: discord.Message, attachment: discord.Attachment) -> DroppedFile:
    return DroppedFile(
        id=attachment.id,
        name=attachment.filename,
        size_bytes=attachment.size,
        content_type=attachment.content_type or "",
        by=message.author.display_name,
        at=message.created_at.timestamp(),
    )


def _translated(error: Exception, what: str, right: str) -> ChatError:
    sentence = _NO_RIGHT if isinstance(error, discord.Forbidden) else _FAILED
    return ChatError(sentence.format(what=what, right=right))
