"""Threads into which the bot writes what is said, and the chat of a voice channel in the place of one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import discord

from bot.discord.answers import MESSAGE_CHARS
from bot.discord.posting import WRITE_TIMEOUT_S, nonce_of, not_posted, post_message
from bot.discord.request_errors import REQUEST_ERRORS
from bot.texts.text import Text

if TYPE_CHECKING:
    from voice.transport.discord_gateway import VoiceChannel

# Discord's limit for the name of a thread.
_THREAD_CHARS = 100
NO_THREAD = Text(
    "I cannot write the transcript into a thread of {channel}. Give my role the permissions Create Public Threads and "
    "Send Messages in Threads there."
)
NO_CHAT = Text(
    "I cannot write the transcript into the chat of {channel}. Give my role the permission Send Messages there."
)


class DiscordThread:
    """A thread, or the chat of a voice channel in its place. Implements `bot.channel.port.Thread`."""

    def __init__(self, thread: discord.Thread | VoiceChannel) -> None:
        self._thread = thread

    @property
    def id(self) -> int:
        return self._thread.id

    async def post(self, text: str) -> int:
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                message = await post_message(self._thread, text[:MESSAGE_CHARS], nonce=nonce_of(text))
        except REQUEST_ERRORS as error:
            if isinstance(self._thread, discord.Thread):
                raise not_posted(error, NO_THREAD, (self._thread.parent or self._thread).name) from error
            raise not_posted(error, NO_CHAT, self._thread.name) from error
        return message.id


async def open_thread(channel: discord.TextChannel, name: str, *, begun: int | None) -> DiscordThread:
    """Return a new thread of a text channel, or the one that was begun there if it can still be written into. Raises
    `ChatError`.
    """
    try:
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            thread = await _open_thread_in(channel, begun)
            if thread is None:
                kind = discord.ChannelType.public_thread
                thread = await channel.create_thread(name=name[:_THREAD_CHARS], type=kind)
    except REQUEST_ERRORS as error:
        raise not_posted(error, NO_THREAD, channel.name) from error
    return DiscordThread(thread)


async def _open_thread_in(channel: discord.TextChannel, thread_id: int | None) -> discord.Thread | None:
    """Return a thread of the channel; None if it is gone or locked. Raises `REQUEST_ERRORS`.

    Discord is asked, because discord.py forgets a thread that nobody has written into for a day.
    """
    if thread_id is None:
        return None
    try:
        found = await channel.guild.fetch_channel(thread_id)
    except (discord.NotFound, discord.Forbidden):
        return None
    if not isinstance(found, discord.Thread) or found.parent_id != channel.id or found.locked:
        return None
    return found
