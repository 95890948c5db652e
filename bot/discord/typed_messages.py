"""Passes on messages that mention the bot, or reply to it, to the room of their server; and voice messages in the chat
of its room.

Discord shows a bot the text and the files of messages that mention it or reply to it without a privileged intent, but
none of a reply whose ping is off, and of no other message.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import discord
import structlog
from discord.app_commands import Cooldown

from bot.channel.markdown import in_message
from bot.channel.port import IN_NO_CHANNEL, ChatError, Person, Recording
from bot.discord.access import Cooldowns
from bot.discord.admission import GuildAdmission, Verdict
from bot.discord.commands.joining import ELSEWHERE
from bot.discord.posting import MESSAGE_CHARS, attempt, post_text, within
from bot.discord.voice_channels import FOR_EVERY_AGE, is_age_allowed, person_of
from bot.server_settings import ServerSettingsBook, language_in
from bot.texts.text import Text, sentence_of
from compaction.errors import CompactionError
from compaction.untrusted_text import inline
from voice.transport.discord_gateway import VoiceChannel

if TYPE_CHECKING:
    from bot.room.rooms import Rooms

log = structlog.get_logger()

# More messages of one person are ignored: each may cost a call of the model.
HOW_OFTEN = Cooldown(10, 60.0)
# Who mentions the bot where it does not talk is told once where it does.
HOW_OFTEN_ELSEWHERE = Cooldown(1, 3_600.0)
# Discord's code for a reply without the permission Read Message History.
NO_HISTORY = 160002
FETCHED_WITHIN_S = 15.0
NOT_FETCHED = Text("Discord did not give me your voice message. Send it again, or write it.")
IN_VOICE = Text("I talk in voice channels. Join one and type /join.")


@dataclass(frozen=True, slots=True)
class DiscordMessage:
    """A message on Discord. Implements `bot.channel.port.TypedMessage`. `language`: the server's."""

    message: discord.Message
    person: Person
    text: str
    language: str
    recording: Recording | None = None

    async def answer(self, text: str) -> bool:
        # Somebody may have deleted it meanwhile.
        reference = self.message.to_reference(fail_if_not_exists=False)
        sentence = in_message(text, self.language)

        async def post() -> discord.Message:
            try:
                return await post_text(self.message.channel, sentence, reference=reference)
            except discord.HTTPException as error:
                if error.code != NO_HISTORY:
                    raise
            return await post_text(self.message.channel, sentence)

        return await attempt(post(), None, event="answer_not_posted") is not None


class TypedMessages:
    """The messages to one bot."""

    def __init__(self, rooms: Rooms, servers: ServerSettingsBook, admission: GuildAdmission) -> None:
        self._rooms = rooms
        self._servers = servers
        self._admission = admission
        self._used = Cooldowns()

    async def on_message(self, message: discord.Message) -> None:
        """Have a message answered if it is for the bot. Never raises what Discord or the store raise."""
        guild, author, channel = message.guild, message.author, message.channel
        if guild is None or not isinstance(author, discord.Member) or author.bot:
            # A private message, or one of a webhook or a bot.
            return
        settings, text = self._servers.of(guild.id), _text_of(message, guild.me)
        recording = _recording_of(message, guild.me)
        # Whoever reads an answer reads of what was said in the voice channel. In the thread of the room's captions
        # people read that anyway, and the server has chosen the text channel. Another thread may have other readers.
        room = self._rooms.open(guild.id)
        is_chosen = channel.id in (settings.chat_channel, None if room is None else room.captions_thread)
        talks_here = is_chosen or isinstance(channel, VoiceChannel)
        is_to_me, here = _is_to(message, guild.me), self._rooms.room_channel_of(guild.id)
        is_heard = recording is not None and here is not None and here.channel_id == channel.id
        if not (is_to_me or is_heard) or (talks_here and not (text or recording)):
            return
        use, how_often = ("typed", HOW_OFTEN) if talks_here else ("elsewhere", HOW_OFTEN_ELSEWHERE)
        if self._used.use(guild.id, author.id, use, how_often, now=time.monotonic()):
            log.info("typed_message_ignored", guild_id=guild.id, reason="too_often")
            return
        if await self._admission.check(guild) is not Verdict.SERVED:
            return
        language = language_in(settings, guild.preferred_locale.value)
        typed = DiscordMessage(message, person_of(author), text, language, recording)
        if not talks_here:
            await typed.answer(IN_VOICE)
            return
        room = self._rooms.open(guild.id)
        try:
            refused = self._refusal(guild, channel, is_chosen=is_chosen) or (
                IN_NO_CHANNEL if room is None else await room.take_typed(typed)
            )
        except CompactionError as error:
            refused = sentence_of(error)
        if refused is not None:
            await typed.answer(refused)

    def _refusal(
        self, guild: discord.Guild, channel: discord.abc.MessageableChannel, *, is_chosen: bool
    ) -> Text | None:
        """Return why a message in `channel` is not answered there, or None. `is_chosen`: the server has chosen this
        text channel for typed talk, or captions are written there.
        """
        room_channel = self._rooms.room_channel_of(guild.id)
        if room_channel is None:
            return None
        if not is_chosen and channel.id != room_channel.channel_id:
            return ELSEWHERE
        heard_in = guild.get_channel(room_channel.channel_id)
        if isinstance(heard_in, VoiceChannel) and not is_age_allowed(heard_in, channel):
            return FOR_EVERY_AGE.fill(channel=getattr(channel, "name", ""))
        return None


def _is_to(message: discord.Message, me: discord.Member) -> bool:
    """Return whether a message mentions the bot, or replies to it."""
    replied = None if message.reference is None else message.reference.resolved
    return any(each.id == me.id for each in message.mentions) or (
        isinstance(replied, discord.Message) and replied.author.id == me.id
    )


def _recording_of(message: discord.Message, me: discord.Member) -> Recording | None:
    """Return the voice message that a message is, as far as Discord shows it to the bot."""
    if not message.flags.voice or not message.attachments:
        return None
    sound = message.attachments[0]

    async def fetch() -> bytes:
        async with within(FETCHED_WITHIN_S, lambda _: ChatError(NOT_FETCHED)):
            return await sound.read()

    return Recording(sound.duration or 0.0, sound.size, fetch, to_bot=_is_to(message, me))


def _text_of(message: discord.Message, me: discord.Member) -> str:
    """Return what was typed, on one line: without the mention of the bot, and with the names of others."""
    text = message.content
    for each in message.mentions:
        name = "" if each.id == me.id else f"@{each.display_name}"
        text = text.replace(f"<@{each.id}>", name).replace(f"<@!{each.id}>", name)
    return inline(text)[:MESSAGE_CHARS]
