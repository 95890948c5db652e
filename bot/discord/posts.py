"""The bot's messages in a thread, or in the chat of a voice channel: begun, filled, changed and deleted.

Discord may have posted a message though the request failed. So words of people go only into one whose id is known, and
noted.
"""

from __future__ import annotations

import datetime
import io
from typing import TYPE_CHECKING, Any, assert_never

import discord
from discord.http import handle_message_parameters

from bot.channel.markdown import in_message
from bot.channel.port import NO_WORDS_YET, RECAP, Card, ChannelGoneError, ChatError, EditsLimitedError
from bot.discord.answers import digest_embed, embed_in
from bot.discord.permissions import lacking
from bot.discord.posting import (
    MESSAGE_CHARS,
    WRITE_TIMEOUT_S,
    attempt,
    not_posted,
    post_message,
    tried_twice,
    unless_gone,
    within,
)
from bot.discord.voice_channels import FOR_EVERY_AGE, is_age_allowed
from bot.texts.text import Text
from compaction.memory.digest import Digest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from bot.channel.port import PostContent
    from voice.transport.discord_gateway import VoiceChannel

NO_THREAD = Text(
    "I cannot write what is said into a thread of {channel}. Give my role these permissions there: "
    "Create Public Threads, Send Messages in Threads."
)
NO_CHAT = Text(
    "I cannot write what is said into the chat of {channel}. Give my role this permission there: Send Messages."
)
NO_FILE = Text("I cannot post a file in {channel}. Give my role this permission there: Attach Files.")
GONE = Text("I have stopped writing in {channel}, because somebody deleted the thread or the chat.")
LOCKED = Text("I have stopped writing into the thread in {channel}, because somebody has locked it.")
TOO_OLD = Text("Discord does not let me change an old message in {channel} at the moment.")
# Discord's codes for a change of what is in an archived thread, and for a message into one that is locked.
THREAD_ARCHIVED, THREAD_LOCKED = 50083, 160005
UNKNOWN_CHANNEL = 10003
# Discord's code for too many edits of messages that are older than an hour. It names no number.
OLD_EDITS_LIMITED = 30046
OLD_AFTER = datetime.timedelta(hours=1)


class DiscordPosts:
    """Implements `bot.channel.port.Posts`. `language`: of what people read there. `name`: of the channel, for them.
    `forbidden`: what they read if the bot may not write there. `heard_in`: the voice channel whose words these are, if
    more of them are put there; its age restriction may change at any time.
    """

    def __init__(
        self,
        client: discord.Client,
        channel: discord.Thread | VoiceChannel | discord.PartialMessageable,
        language: str,
        name: str,
        *,
        forbidden: Text = NO_CHAT,
        heard_in: VoiceChannel | None = None,
    ) -> None:
        self._client = client
        self._channel = channel
        self._language = language
        self._name = name
        self._forbidden = forbidden
        self._heard_in = heard_in

    @property
    def id(self) -> int:
        return self._channel.id

    async def begin(self, head: Text | Card = NO_WORDS_YET) -> int:
        self._check_age()
        shown = self._shown(head)
        async with within(WRITE_TIMEOUT_S, lambda error: self._failure(error, self._lacks(shown))):
            message = await post_message(self._channel, shown.pop("content", None), silent=True, **shown)
        return message.id

    async def fill(self, message_id: int, content: PostContent) -> bool:
        self._check_age()
        nobody = discord.AllowedMentions.none()
        forbidden = self._lacks(self._shown(content))

        async def edit() -> object:
            # Shown anew for each try, because a try reads a file to its end. Whatever it was begun with: an embed is
            # seen, and no link unfolds. discord.py's own way to edit a message that it does not know leaves that as it
            # was.
            shown = self._shown(content)
            flags = discord.MessageFlags(suppress_embeds="embed" not in shown)
            with handle_message_parameters(**shown, flags=flags, allowed_mentions=nobody) as form:
                return await self._client.http.edit_message(self.id, message_id, params=form)

        def failed(error: Exception) -> ChatError:
            is_limited = isinstance(error, discord.RateLimited) or getattr(error, "code", None) == OLD_EDITS_LIMITED
            if is_limited and discord.utils.utcnow() - discord.utils.snowflake_time(message_id) >= OLD_AFTER:
                return EditsLimitedError(TOO_OLD.fill(channel=self._name))
            return self._failure(error, forbidden)

        async with within(WRITE_TIMEOUT_S, failed):
            try:
                await tried_twice(lambda: self._unarchived(edit), self._channel)
            except discord.NotFound as error:
                if error.code == UNKNOWN_CHANNEL:
                    raise
                return False
        return True

    async def delete(self, message_id: int) -> bool:
        request = unless_gone(self._unarchived(self._channel.get_partial_message(message_id).delete), None)
        return await attempt(request, False, event="post_not_deleted", channel_id=self.id) is not False

    def _check_age(self) -> None:
        """Raise `ChatError` if these words may not be shown there now."""
        if self._heard_in is not None and not is_age_allowed(self._heard_in, self._channel):
            raise ChatError(FOR_EVERY_AGE.fill(channel=self._name))

    async def _unarchived(self, request: Callable[[], Awaitable[object]]) -> object:
        """Return what a request returns, also in a thread that Discord has archived."""
        try:
            return await request()
        except discord.HTTPException as error:
            if error.code != THREAD_ARCHIVED:
                raise
            try:
                await self._client.http.edit_channel(self.id, archived=False)
            except discord.Forbidden:
                raise error from None
        return await request()

    def _failure(self, error: Exception, forbidden: Text) -> ChatError:
        if isinstance(error, discord.NotFound) and error.code == UNKNOWN_CHANNEL:
            return ChannelGoneError(GONE.fill(channel=self._name))
        if getattr(error, "code", None) in (THREAD_ARCHIVED, THREAD_LOCKED):
            return ChannelGoneError(LOCKED.fill(channel=self._name))
        return not_posted(forbidden, self._name)(error)

    def _lacks(self, shown: Mapping[str, object]) -> Text:
        """Return what people read if the bot may not post this: which permission it lacks, as far as that is known."""
        needed = ["send_messages_in_threads" if isinstance(self._channel, discord.Thread) else "send_messages"]
        needed += [name for key, name in (("embed", "embed_links"), ("attachments", "attach_files")) if key in shown]
        channel = self._channel.parent if isinstance(self._channel, discord.Thread) else self._channel
        fallback = NO_FILE if "attachments" in shown else self._forbidden
        if channel is None or isinstance(channel, discord.PartialMessageable):
            return fallback
        return lacking(channel.permissions_for(channel.guild.me), self._name, needed) or fallback

    def _shown(self, content: PostContent) -> dict[str, Any]:
        """Return content as the fields of a message."""
        match content:
            case Text():
                return {"content": in_message(content, self._language)}
            case str():
                return {"content": content[:MESSAGE_CHARS]}
            case Card(title, text, fields):
                return {"embed": embed_in(self._language, title=title, text=text, fields=fields)}
            case Digest():
                return {"embed": digest_embed(content, self._language, title=RECAP.fill(channel=self._name))}
            case (name, of_file):
                return {"attachments": [discord.File(io.BytesIO(of_file), name)]}
            case _:
                assert_never(content)
