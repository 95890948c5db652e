"""Implements `bot.channel.port` for a Discord voice channel."""

from __future__ import annotations

import dataclasses
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import discord
import structlog

from bot.channel.markdown import in_message
from bot.channel.port import ChannelNotAllowedError, ChatError, Person
from bot.discord.access import CommandUser
from bot.discord.chat import CHAT_READER, DiscordChat, PostedCall, post_call
from bot.discord.command_tree import ChatButtons
from bot.discord.listening_mark import ListeningMark
from bot.discord.permissions import lacking
from bot.discord.posting import (
    UNSEEN,
    WRITE_TIMEOUT_S,
    attempt,
    not_posted,
    post_message,
    post_text,
    unless_gone,
    within,
)
from bot.discord.posts import NO_THREAD, DiscordPosts
from bot.discord.voice_channels import (
    FOR_EVERY_AGE,
    entry_refusal,
    is_age_allowed,
    look_at,
    may_enter,
    occasions_of,
    role_ids,
    viewer_of,
    vocal_channels,
)
from bot.discord.voice_presence import VoiceRequests
from bot.server_settings import ServerSettingsBook, language_in, no_server_settings
from bot.texts.text import Text, counted, in_language
from bot.viewers import Viewer
from voice.transport.connection import DiscordVoiceConnection
from voice.transport.discord_gateway import DiscordMainGateway, VoiceChannel, is_bot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence

    from bot.channel.port import CallRequest, ConnectionListener, OnPress, VoiceConnection
    from voice.transport.connection_events import ConnectionEvent
    from voice.transport.outgoing import FrameSource
    from voice.transport.paced_sender import PacedSender

log = structlog.get_logger()

# Discord describes so many members in answer to one request, of which it takes 120 a minute from a shard.
_DESCRIBED_AT_ONCE = 100
# Discord's limit for the name of a thread.
_THREAD_CHARS = 100
THREAD_PERMISSIONS = ("view_channel", "create_public_threads", "send_messages_in_threads")
NO_CALL = Text("I cannot ask in the chat of {channel}. Give my role the permission Send Messages there.")


class DiscordRoomChannel:
    """One voice or stage channel with its own chat. Implements `bot.channel.port.RoomChannel`."""

    def __init__(
        self,
        client: discord.Client,
        channel: VoiceChannel,
        paced_sender: PacedSender | None = None,
        *,
        owners: Collection[int] = (),
        servers: ServerSettingsBook | None = None,
        buttons: ChatButtons | None = None,
        require_e2ee: bool = False,
        voice_requests: VoiceRequests | None = None,
    ) -> None:
        """`client`: knows the channel. `paced_sender`: sends the bot's audio; without it each connection sends its own.
        `owners`: who runs the bot.
        `servers`: what each server has chosen.
        `buttons`: those below messages in the chat. `require_e2ee`: stay only in encrypted calls.
        `voice_requests`: is told where the bot asks to be.
        """
        self._require_e2ee = require_e2ee
        self._voice_requests = voice_requests or VoiceRequests()
        self._servers = servers or no_server_settings()
        self._buttons = buttons or ChatButtons()
        self._client = client
        self._last_seen = channel
        self._paced_sender = paced_sender
        self._owners = owners
        self._mark = ListeningMark()
        # The members present, as Discord last described them, by id.
        self._fetched: dict[int, discord.Member] = {}
        # Whom it was asked to describe.
        self._asked: set[int] = set()
        # Those of them who may read what is in the channel's chat.
        self._chat_readers: set[int] = set()
        # Their names, also while Discord does not describe them: nobody is renamed by a failure.
        self._names: dict[int, str] = {}

    @property
    def guild_id(self) -> int:
        return self._last_seen.guild.id

    @property
    def channel_id(self) -> int:
        return self._last_seen.id

    @property
    def name(self) -> str:
        return self._channel.name

    @property
    def guild_name(self) -> str:
        return self._channel.guild.name

    @property
    def occasions(self) -> Sequence[str]:
        return occasions_of(self._channel)

    @property
    def language(self) -> str:
        """Return the language of what everybody in the channel reads, as a Discord locale."""
        return language_in(self._servers.of(self.guild_id), self._channel.guild.preferred_locale.value)

    def chat_for(self, asker_id: int | None) -> DiscordChat:
        return DiscordChat(self._channel, asker_id=asker_id)

    @property
    def _channel(self) -> VoiceChannel:
        """The current channel object. discord.py creates all objects again with a new gateway session.

        Until the channel is known again, this is the previous object.
        """
        guild = self._client.get_guild(self.guild_id)
        found = None if guild is None else guild.get_channel(self.channel_id)
        if isinstance(found, VoiceChannel):
            self._last_seen = found
        return self._last_seen

    def members(self) -> Sequence[Person]:
        channel = self._channel
        return [self._person(member) for member in channel.members if member.id != channel.guild.me.id]

    def _person(self, member: discord.Member) -> Person:
        known = self._fetched.get(member.id)
        # discord.py keeps the name of when somebody came: without the members intent it hears of no new one.
        name = self._names.get(member.id, member.display_name)
        roles = frozenset[int]() if known is None else role_ids(known)
        return Person(member.id, name, member.bot, roles, reads_chat=member.id in self._chat_readers)

    async def refresh_rights(self, *, newcomers_only: bool = False) -> None:
        channel = self._channel
        present = {user_id for user_id in channel.voice_states if user_id != channel.guild.me.id}
        self._fetched = {user_id: member for user_id, member in self._fetched.items() if user_id in present}
        self._names = {user_id: name for user_id, name in self._names.items() if user_id in present}
        # Whoever Discord does not describe is asked about again with everybody: few requests are allowed in a minute.
        asked = list(present - self._asked if newcomers_only else present)
        self._asked = present
        for first in range(0, len(asked), _DESCRIBED_AT_ONCE):
            ids = asked[first : first + _DESCRIBED_AT_ONCE]
            request = channel.guild.query_members(user_ids=ids, limit=_DESCRIBED_AT_ONCE, cache=False)
            found = await attempt(request, (), event="rights_not_known", channel_id=self.channel_id)
            described = {member.id: member for member in found}
            kept = {user_id: member for user_id, member in self._fetched.items() if user_id not in ids}
            self._fetched = kept | described
            self._names |= {user_id: member.display_name for user_id, member in described.items()}
        may = channel.permissions_for
        self._chat_readers = {each for each, member in self._fetched.items() if may(member) >= CHAT_READER}

    def shared_channels(self) -> frozenset[int]:
        channel = self._channel
        guild = channel.guild
        # `channel.members` leaves out people whom discord.py does not know, and they hear the bot too. Its cached
        # members have the roles of when they came.
        present = [self._fetched.get(user_id) for user_id in channel.voice_states if user_id != guild.me.id]
        known = [member for member in present if member is not None]
        if not known or len(known) < len(present):
            return frozenset({channel.id})
        shared = {
            other.id
            for other in vocal_channels(guild)
            if is_age_allowed(other, channel) and all(may_enter(other, member) for member in known)
        }
        return frozenset({channel.id, *shared})

    def viewers(self) -> Sequence[Viewer]:
        channel = self._channel
        own_id, client, seen = channel.guild.me.id, self._client, channel.guild
        return [
            self._viewer(each) for each in channel.voice_states if each != own_id and not is_bot(client, seen, each)
        ]

    def _viewer(self, user_id: int) -> Viewer:
        channel = self._channel
        known = self._fetched.get(user_id)
        if known is None:
            # Nobody knows their roles yet, so no history is open to them.
            here = frozenset(each.id for each in vocal_channels(channel.guild) if is_age_allowed(each, channel))
            return Viewer(str(user_id), self.guild_id, here, present_in=channel.id)
        user = CommandUser(known.guild_permissions, is_owner=user_id in self._owners)
        settings = self._servers.of(self.guild_id)
        return viewer_of(
            known, settings, manages=user.is_manager, is_allowed=lambda each: is_age_allowed(each, channel)
        )

    async def write(self, sentence: str) -> None:
        await self._write(sentence)

    async def offer_talk(self, sentence: str) -> None:
        await self._write(sentence, self._buttons.talk)

    async def write_notice(self, text: str, *, asks: bool = False) -> bool:
        return await self._write(text, self._buttons.consent if asks else None)

    async def _write(self, text: str, buttons: Callable[[str], discord.ui.View] | None = None) -> bool:
        """Write a text in as many messages as it takes, with the buttons below the last. Return whether it is there.

        So no sentence about who hears what is cut off, however long a server's own words are.
        """
        view = None if buttons is None else buttons(self.language)
        request = post_text(self._channel, in_message(text, self.language), view=view)
        return await self._id_of(request, event="message_not_written") is not None

    async def open_thread(self, channel_id: int, *, begun: int | None = None) -> DiscordPosts:
        channel = self._channel.guild.get_channel(channel_id)
        if channel is not None and not is_age_allowed(self._channel, channel):
            raise ChatError(FOR_EVERY_AGE.fill(channel=channel.name))
        if isinstance(channel, discord.TextChannel):
            return await self._thread_of(channel, begun)
        # The chat of a voice channel, or a channel that is gone.
        return self._posts_in(channel if isinstance(channel, VoiceChannel) else self._channel)

    async def _thread_of(self, channel: discord.TextChannel, begun: int | None) -> DiscordPosts:
        """Return a new thread, or the one that was begun there if it can still be written into. Raises `ChatError`."""
        # Before the thread is begun: one into which nothing can be written would stay.
        lacks = lacking(channel.permissions_for(channel.guild.me), channel.name, THREAD_PERMISSIONS)
        if lacks is not None:
            raise ChatError(lacks)
        name = in_language(Text("What is said in {channel}", channel=self.name), self.language)
        async with within(WRITE_TIMEOUT_S, not_posted(NO_THREAD, channel.name)):
            # Discord is asked, because discord.py forgets a thread that nobody has written into for a day.
            found = None if begun is None else await unless_gone(channel.guild.fetch_channel(begun), None, gone=UNSEEN)
            if not (isinstance(found, discord.Thread) and found.parent_id == channel.id and not found.locked):
                kind = discord.ChannelType.public_thread
                found = await channel.create_thread(name=name[:_THREAD_CHARS], type=kind)
        return DiscordPosts(
            self._client, found, self.language, channel.name, forbidden=NO_THREAD, heard_in=self._channel
        )

    def _posts_in(self, channel: VoiceChannel) -> DiscordPosts:
        return DiscordPosts(self._client, channel, self.language, channel.name, heard_in=self._channel)

    @property
    def posts(self) -> DiscordPosts:
        return self._posts_in(self._channel)

    async def ask_for_press(self, request: CallRequest, on_press: OnPress) -> PostedCall:
        async with within(WRITE_TIMEOUT_S, not_posted(NO_CALL, self.name)):
            spoken = self._servers.of(self.guild_id).spoken
            return await post_call(self._channel, request, on_press, self.language, spoken)

    async def offer_catch_up(self, person: Person, *, minutes: int) -> bool:
        if self._buttons.catch_up is None:
            return False
        offer = counted(
            minutes,
            "{name}, you were away for {count} minute.",
            "{name}, you were away for {count} minutes.",
            name=person.name,
        )
        view, text = self._buttons.catch_up(self.language), in_message(offer, self.language)
        request = post_message(self._channel, text, view=view, silent=True)
        return await self._id_of(request, event="catch_up_not_offered") is not None

    async def _id_of(self, request: Awaitable[discord.Message], *, event: str) -> int | None:
        """Return the id of the message that is posted or changed; log `event` and return None if Discord does not take
        it.
        """
        message = await attempt(request, None, event=event, channel_id=self.channel_id)
        return None if message is None else message.id

    async def show_listening(self, *, on: bool) -> bool:
        if on:
            return await self._mark.show(self._channel.guild, self.language)
        await self._mark.remove(self._channel.guild)
        return False

    @property
    def _voice(self) -> discord.VoiceState | None:
        return self._channel.guild.me.voice

    @property
    def audible(self) -> bool:
        return self._voice is None or not (self._voice.mute or self._voice.suppress)

    @property
    def muted(self) -> bool:
        return self._voice is not None and self._voice.mute

    @property
    def deafened(self) -> bool:
        return self._voice is not None and self._voice.deaf

    def refusal(self) -> Text | None:
        return entry_refusal(look_at(self._channel), chosen_here=self._servers.of(self.guild_id).channels)

    @asynccontextmanager
    async def connect(
        self,
        source: FrameSource,
        listener: ConnectionListener,
    ) -> AsyncIterator[VoiceConnection]:
        # Here, because the bot also comes by being moved, and by itself after a crash.
        if (refused := self.refusal()) is not None:
            raise ChannelNotAllowedError(refused)

        def changed(event: ConnectionEvent) -> None:
            # Its fields never contain speech.
            fields = {each.name: getattr(event, each.name) for each in dataclasses.fields(event) if each.name != "at"}
            name = f"voice_{type(event).__name__.lower()}"
            log.info(name, **fields)
            listener.on_change()

        async with DiscordVoiceConnection(
            DiscordMainGateway(
                self._client, self._channel, is_owner=listener.is_owner, on_request=self._voice_requests.on_request
            ),
            sink=listener.hear,
            heard_since=listener.heard_since,
            on_event=changed,
            paced_sender=self._paced_sender,
            require_e2ee=self._require_e2ee,
        ) as connection:
            connection.play(source)
            yield connection
