"""Sees to the transcripts and recaps that the bot has posted: what was forgotten goes from them, and they go with their
session.

What somebody is forgotten of, by /forget-me or by `roomtone memory forget` beside the bot, the store marks in the
transaction that forgets. Such a message is made anew of what is left, without a model, and edited in; one of which
nothing is left, or too little for a recap, is deleted. One that Discord finds too old for an edit is deleted, and what
is left is posted as a new message.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, assert_never

import structlog

from bot.channel.port import ChatError, EditsLimitedError
from bot.posts.recap import LEAST_SAID
from bot.posts.words import first_message, lines_of, transcript_file
from bot.store.posted_transcripts import PostedKind, StalePost, TranscriptMessage
from bot.store.rows import UnreadableRowError
from compaction.errors import StoreError

if TYPE_CHECKING:
    from datetime import tzinfo

    from bot.channel.port import PostContent, Posts, RoomChannel
    from bot.memory.personal_recall import MemoryReaders
    from bot.store.sessions import Sessions, StoredSession

log = structlog.get_logger()

# For what another process forgot, and after a failure of Discord or of the store.
LOOK_EVERY_S = 60.0


class MessageEditor(Protocol):
    """Changes what the bot has posted on Discord. `bot.discord.client` implements it."""

    def find_channel(self, guild_id: int, channel_id: int) -> RoomChannel | None:
        """Return a voice channel; None if it is not there at the moment."""

    def find_posts(self, guild_id: int, channel_id: int) -> Posts | None:
        """Return what the bot has posted in a channel or a thread. None: of another process's server."""


class PostedRenewal:
    """The posted transcripts and recaps of one database. `readable`: reads what is left of a session.

    *Ownership*: the bot runs `run` in a task.
    """

    def __init__(self, sessions: Sessions, readable: MemoryReaders, *, zone: tzinfo) -> None:
        self._sessions = sessions
        self._posted = sessions.posted_transcripts
        self._readable = readable
        self._zone = zone
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look soon: the store has marked what has words that were forgotten. Does not wait."""
        self._wake.set()

    async def run(self, editor: MessageEditor) -> None:
        """Work until cancelled. *Cancellation* is safe at any point."""
        while True:
            self._wake.clear()
            try:
                await self.run_once(editor)
            except StoreError as error:
                log.warning("posts_not_renewed", problem=error)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._wake.wait()

    async def run_once(self, editor: MessageEditor) -> None:
        """Delete what is of deleted sessions, and make anew what is marked. What Discord refuses is tried again, and so
        is a channel that is not there at the moment, or a session that cannot be read. Raises `StoreError`.
        """
        for each in await self._posted.outdated():
            if await _delete(editor, each):
                await self._posted.deleted(each)
                log.info("posted_message_deleted", message_id=each.message_id)
        for post in await self._posted.stale():
            session = await self._sessions.find(post.session_id)
            if session is None:
                continue
            try:
                gone = await self._renew(post, session, editor)
            except (UnreadableRowError, ChatError) as error:
                log.warning("post_not_renewed", session_id=session.id, problem=error)
                continue
            if gone is not None:
                await self._posted.renewed(post, deleted=gone)
                log.info("post_renewed", session_id=session.id, kind=post.kind.value, deleted=len(gone))

    async def _renew(
        self, post: StalePost, session: StoredSession, editor: MessageEditor
    ) -> tuple[TranscriptMessage, ...] | None:
        """Make messages anew, and return those that were deleted. None: something of the old ones may be left. Raises
        `ChatError`, and `UnreadableRowError` for a session that cannot be read.
        """
        if post.kind is PostedKind.LINES:
            return await self._renew_lines(post, session, editor)
        known = await self._posted.begin(session.id)
        (message,) = post.messages
        channel = editor.find_channel(message.guild_id, message.channel_id)
        if channel is None:
            return None
        match post.kind:
            case PostedKind.RECAP:
                digest = await self._readable.digests.of(session, model_timeout_s=0.0)
                if digest.turn_count >= LEAST_SAID:
                    return await self._fill(channel.posts, post, message, digest, known)
            case PostedKind.FILE:
                file = await transcript_file(channel, session, self._readable.views, zone=self._zone)
                if file.lines > 0:
                    return await self._fill(channel.posts, post, message, (file.name, file.content), known)
            case _:
                assert_never(post.kind)
        return (message,) if await _delete(editor, message) else None

    async def _renew_lines(
        self, post: StalePost, session: StoredSession, editor: MessageEditor
    ) -> tuple[TranscriptMessage, ...] | None:
        assert post.turns is not None, "lines are of some turns"
        known = await self._posted.begin(session.id)
        first, last = post.turns
        read = await self._readable.views.read(session)
        kept = (turn for turn in read.turns if first <= turn.seq <= last and turn.seq not in post.left_out)
        lines = [(line.seq, str(line)) for turn in kept for line in lines_of(turn)]
        gone: list[TranscriptMessage] = []
        for each in post.messages:
            text, count = first_message(lines)
            del lines[:count]
            posts = editor.find_posts(each.guild_id, each.channel_id)
            if posts is None:
                return None
            if text:
                gone += await self._fill(posts, post, each, text, known)
            elif await posts.delete(each.message_id):
                gone.append(each)
            else:
                return None
        return tuple(gone)

    async def _fill(
        self, posts: Posts, post: StalePost, message: TranscriptMessage, content: PostContent, known: int | None
    ) -> tuple[TranscriptMessage, ...]:
        """Put what is left into a message, or into a new one if it is too old. Return what was deleted. `known`: what
        `PostedTranscripts.begin` returned before it was read. Raises `ChatError`.
        """
        try:
            await posts.fill(message.message_id, content)
            return ()
        except EditsLimitedError:
            if not await posts.delete(message.message_id):
                raise
        anew = replace(message, message_id=await posts.begin())
        try:
            async with self._posted.filling(post.session_id, anew, post.kind, begun=known, turns=post.turns):
                await posts.fill(anew.message_id, content)
        except (ChatError, StoreError):
            await posts.delete(anew.message_id)
            raise
        return (message,)


async def _delete(editor: MessageEditor, posted: TranscriptMessage) -> bool:
    posts = editor.find_posts(posted.guild_id, posted.channel_id)
    return posts is not None and await posts.delete(posted.message_id)
