"""Passes on messages that mention the bot, or reply to it, to the room of their server.

Discord shows a bot the text of such messages without a privileged intent. `for_whom` is the decision; it needs no
Discord.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

import discord
import structlog
from discord.app_commands import Cooldown

from bot.channel.markdown import in_message
from bot.discord.access import Cooldowns
from bot.discord.commands.room import ELSEWHERE
from bot.discord.place import VOICE_CHANNELS
from bot.discord.posting import MESSAGE_CHARS, REQUEST_ERRORS, WRITE_TIMEOUT_S, message_parts, post_message
from bot.discord.voice_channels import FOR_EVERY_AGE, is_told_in, person_of
from bot.server_settings import language_in
from bot.texts.text import Text, sentence_of
from compaction.errors import CompactionError
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.channel.port import Person
    from bot.discord.command_tree import VoiceRooms
    from bot.server_settings import ServerSettingsBook

log = structlog.get_logger()

# More messages of one person are ignored: each may cost a call of the model.
HOW_OFTEN = Cooldown(10, 60.0)


class For(Enum):
    """Whom a message is for."""

    NOBODY = auto()
    # It is meant for the bot, in a place where it answers only if it is in that voice channel.
    ROOM_ELSEWHERE = auto()
    ROOM = auto()


@dataclass(frozen=True, slots=True)
class Posted:
    """A message in a channel of a server. `to_us`: it mentions the bot or replies to it. `in_voice_chat`: it is in the
    chat of a voice channel. `text`: without the mention.
    """

    channel_id: int
    text: str
    to_us: bool = True
    by_bot: bool = False
    in_voice_chat: bool = True


def for_whom(posted: Posted, *, room_channel: int | None, chosen_channel: int | None) -> For:
    """Decide who gets a message. `room_channel`: the voice channel that the bot is in. `chosen_channel`: the text
    channel that the server has chosen for typed talk.
    """
    if posted.by_bot or not posted.to_us or not posted.text:
        return For.NOBODY
    is_chosen = posted.channel_id == chosen_channel
    if room_channel is not None and (is_chosen or posted.channel_id == room_channel):
        return For.ROOM
    return For.ROOM_ELSEWHERE if is_chosen or posted.in_voice_chat else For.NOBODY


class DiscordMessage:
    """A message on Discord. Implements `bot.channel.port.TypedMessage`. `language`: the server's."""

    def __init__(self, message: discord.Message, person: Person, text: str, *, language: str) -> None:
        self._message = message
        self.person = person
        self.text = text
        self._language = language

    async def answer(self, text: str) -> bool:
        # Somebody may have deleted it meanwhile.
        reference = self._message.to_reference(fail_if_not_exists=False)
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                for part in message_parts(in_message(text, self._language)):
                    await post_message(self._message.channel, part, reference=reference, suppress_embeds=True)
        except REQUEST_ERRORS as error:
            log.warning("answer_not_posted", error_class=type(error).__name__)
            return False
        return True


class TypedMessages:
    """The messages to one bot. `serves`: returns whether it serves a server."""

    def __init__(
        self, rooms: VoiceRooms, servers: ServerSettingsBook, serves: Callable[[int], Awaitable[bool]]
    ) -> None:
        self._rooms = rooms
        self._servers = servers
        self._serves = serves
        self._used = Cooldowns()

    async def on_message(self, message: discord.Message) -> None:
        """Have a message answered if it is for the bot. Never raises what Discord or the store raise."""
        guild = message.guild
        if guild is None or not isinstance(message.author, discord.Member):
            # A private message, or one of a webhook.
            return
        place, settings = self._rooms.place_of(guild.id), self._servers.of(guild.id)
        posted = Posted(
            message.channel.id,
            _text_of(message, guild.me),
            to_us=_is_to(message, guild.me),
            by_bot=message.author.bot or message.webhook_id is not None,
            in_voice_chat=isinstance(message.channel, VOICE_CHANNELS),
        )
        whom = for_whom(
            posted,
            room_channel=None if place is None else place.channel_id,
            chosen_channel=settings.chat_channel,
        )
        if whom is For.NOBODY:
            return
        if self._used.use(guild.id, message.author.id, "typed", HOW_OFTEN, now=time.monotonic()):
            log.info("typed_message_ignored", guild_id=guild.id, reason="too_often")
            return
        if not await self._serves(guild.id):
            return
        typed = DiscordMessage(
            message,
            person_of(message.author),
            posted.text,
            language=language_in(settings, guild.preferred_locale.value),
        )
        if (why := await self._why_not(typed, message, None if place is None else place.channel_id, whom)) is not None:
            await typed.answer(why)

    async def _why_not(
        self, typed: DiscordMessage, message: discord.Message, room_channel: int | None, whom: For
    ) -> Text | None:
        """Have a message answered; return why it is not, or None."""
        assert message.guild is not None, "checked by the caller"
        if whom is For.ROOM_ELSEWHERE and room_channel is not None:
            return ELSEWHERE
        heard_in = None if room_channel is None else message.guild.get_channel(room_channel)
        if isinstance(heard_in, VOICE_CHANNELS) and not is_told_in(heard_in, message.channel):
            return FOR_EVERY_AGE.fill(channel=getattr(message.channel, "name", ""))
        try:
            return await self._rooms.take_typed(message.guild.id, typed)
        except CompactionError as error:
            return sentence_of(error)


def _is_to(message: discord.Message, me: discord.Member) -> bool:
    """Return whether a message mentions the bot, or replies to it."""
    replied = None if message.reference is None else message.reference.resolved
    return any(each.id == me.id for each in message.mentions) or (
        isinstance(replied, discord.Message) and replied.author.id == me.id
    )


def _text_of(message: discord.Message, me: discord.Member) -> str:
    """Return what was typed, on one line: without the mention of the bot, and with the names of others."""
    text = message.content
    for each in message.mentions:
        name = "" if each.id == me.id else f"@{each.display_name}"
        text = text.replace(f"<@{each.id}>", name).replace(f"<@!{each.id}>", name)
    return inline(text)[:MESSAGE_CHARS]
