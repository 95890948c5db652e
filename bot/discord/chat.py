"""Implements `bot.channel.port.Chat` for Discord: reads posted files and posts messages for one member.

The bot may see channels that the member may not, so each call first asks Discord for the member and works out what they
may do in this channel now. What they may not do themselves, the bot does not do for them.

Without the message content intent (discord.message_content), Discord shows a bot only the files of messages that
mention it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import discord

from bot.channel.port import ChatError, DroppedFile
from bot.discord.answers import MESSAGE_CHARS
from bot.discord.posting import post_message
from bot.discord.request_errors import REQUEST_ERRORS
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voice.transport.discord_gateway import VoiceChannel

# Messages that are searched for files.
MOST_MESSAGES = 50
TIMEOUT_S = 8.0
# Asking who somebody is takes a tenth of a second; a tool has 8 to 12 s for everything.
ASKER_TIMEOUT_S = 2.0

_NO_RIGHT = Text("I may not {what} in this channel's chat. Give me the permission {right} there.")
_NO_RIGHT_OF_ASKER = Text(
    "Who asks may not {what} in this channel's chat, so I don't do it for them. A moderator can give them the "
    "permission {right} there."
)
_NOBODY_ASKS = Text("I use the chat only for one person who asks, and I can't tell who that is.")
_FAILED = Text("Discord did not let me {what} in this channel's chat just now. Try again.")


class _Use(NamedTuple):
    """One use of the chat. `what` completes `I may not …`; the permissions have Discord's names."""

    what: Text
    right: Text
    permissions: discord.Permissions


_READ = _Use(
    Text("read what people dropped"),
    Text("Read Message History"),
    discord.Permissions(view_channel=True, read_message_history=True),
)
_WRITE = _Use(Text("write"), Text("Send Messages"), discord.Permissions(view_channel=True, send_messages=True))


class DiscordChat:
    """A voice channel's own chat, used with the permissions of one member. `asker_id`: the member; None: nobody."""

    def __init__(self, channel: VoiceChannel, *, asker_id: int | None) -> None:
        self._channel = channel
        self._asker_id = asker_id
        # The files listed last, by id.
        self._attachments: dict[int, discord.Attachment] = {}

    async def files(self, *, most: int) -> Sequence[DroppedFile]:
        await self._require(_READ)
        own_id = self._channel.guild.me.id
        found: list[tuple[DroppedFile, discord.Attachment]] = []
        try:
            async with asyncio.timeout(TIMEOUT_S):
                async for message in self._channel.history(limit=MOST_MESSAGES):
                    if message.author.id == own_id:
                        # A transcript: it has words of people who may have opted out or been forgotten since.
                        continue
                    found += ((_dropped(message, attachment), attachment) for attachment in message.attachments)
        except REQUEST_ERRORS as error:
            raise _translated(error, _READ) from error
        newest = sorted(found, key=lambda each: each[0].at, reverse=True)[:most]
        self._attachments = {file.id: attachment for file, attachment in newest}
        return [file for file, _ in newest]

    async def fetch(self, file: DroppedFile, *, max_bytes: int) -> bytes:
        attachment = self._attachments.get(file.id)
        if attachment is None or attachment.size > max_bytes:
            raise ChatError(Text("{file} was deleted, or is too large to read.", file=file.name))
        try:
            async with asyncio.timeout(TIMEOUT_S):
                content = await attachment.read()
        except REQUEST_ERRORS as error:
            raise _translated(error, _READ._replace(what=Text("read {file}", file=file.name))) from error
        if len(content) > max_bytes:
            raise ChatError(Text("{file} is larger than Discord says.", file=file.name))
        return content

    async def post(self, text: str) -> None:
        await self._require(_WRITE)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await post_message(self._channel, text[:MESSAGE_CHARS])
        except REQUEST_ERRORS as error:
            raise _translated(error, _WRITE) from error

    async def _require(self, use: _Use) -> None:
        """Raise `ChatError` unless the asker may do this themselves now.

        The member is fetched anew: discord.py is not told of changed roles without a privileged intent.
        """
        if self._asker_id is None:
            raise ChatError(_NOBODY_ASKS)
        try:
            async with asyncio.timeout(ASKER_TIMEOUT_S):
                member = await self._channel.guild.fetch_member(self._asker_id)
        except discord.NotFound as error:
            raise ChatError(_NOBODY_ASKS) from error
        except REQUEST_ERRORS as error:
            raise _translated(error, use) from error
        if not use.permissions <= self._channel.permissions_for(member):
            raise ChatError(_NO_RIGHT_OF_ASKER.fill(what=use.what, right=use.right))


def _dropped(message: discord.Message, attachment: discord.Attachment) -> DroppedFile:
    return DroppedFile(
        id=attachment.id,
        name=attachment.filename,
        size_bytes=attachment.size,
        content_type=attachment.content_type or "",
        by=message.author.display_name,
        by_id=message.author.id,
        at=message.created_at.timestamp(),
    )


def _translated(error: Exception, use: _Use) -> ChatError:
    sentence = _NO_RIGHT if isinstance(error, discord.Forbidden) else _FAILED
    return ChatError(sentence.fill(what=use.what, right=use.right))
