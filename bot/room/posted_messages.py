"""What a session has posted on Discord: its recap, on servers that have chosen it, and its transcript.

A recap is posted into the voice channel's chat when the session ends. One in which words were forgotten is renewed: by
/forget-me, or by `roomtone memory forget` beside the bot. The store marks it in the transaction that forgets. It is
made anew of what is left, without a model, and edited in; one of which too little is left is deleted.
What was posted of a session that is deleted, for its age or by the operator, is deleted too.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task
from bot.room.endings import MOVED, NOT_ANNOUNCED, PROCESS_ENDS
from bot.store.rows import UnreadableRowError
from compaction.errors import StoreError
from voice.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from bot.channel.port import Place
    from bot.memory.digests import Digests
    from bot.room.services import RoomServices
    from bot.store.posted_transcripts import PostedTranscripts
    from bot.store.sessions import Sessions
    from compaction.memory.digest import Digest
    from compaction.model import SessionId

    # Deletes a message by its server, channel and id. Returns whether it is gone; None: of another process's server.
    DeleteMessage = Callable[[int, int, int], Awaitable[bool | None]]


log = structlog.get_logger()

# A recap of less would be as long as the conversation.
LEAST_SAID = 6
# Nobody can call the bot back before.
MODEL_TIMEOUT_S = 8.0
# The process ends, or people wait in another channel: no time for a model.
_HURRIED = frozenset({PROCESS_ENDS, MOVED})


async def post_recap(session_id: SessionId, place: Place, services: RoomServices, *, reason: str) -> None:
    """Post the recap of a session that has just ended. `reason`: why it ended. A failure is logged."""
    sessions, readable = services.memory.sessions, services.memory.readable
    if readable is None or reason == NOT_ANNOUNCED or not services.servers.of(place.guild_id).posts_recap:
        return
    try:
        session = await sessions.find(session_id)
        if session is None:
            return
        await sessions.recap_begun(session_id)
        digest = await readable.digests.of(session, model_timeout_s=0.0 if reason in _HURRIED else MODEL_TIMEOUT_S)
    except StoreError as error:
        log.warning("recap_not_posted", session_id=session_id, problem=error)
        return
    if digest.turn_count < LEAST_SAID:
        log.info("recap_not_posted", session_id=session_id, reason="too_little_said")
        return
    # A room that is cut off now would leave a message behind from which nothing is ever forgotten.
    await run_shielded(_post(digest, session_id, place, sessions), name=f"recap-{place.guild_id}")


async def _post(digest: Digest, session_id: SessionId, place: Place, sessions: Sessions) -> None:
    """Post a recap, and remember in which message."""
    message_id = await place.write_recap(digest)
    if message_id is None:
        log.info("recap_not_posted", session_id=session_id, reason="discord_refused")
        return
    log.info("recap_posted", session_id=session_id)
    try:
        # So that it can be made anew when words in it are forgotten.
        await sessions.recap_posted(session_id, message_id)
    except StoreError as error:
        log.warning("recap_not_remembered", session_id=session_id, problem=error)
        await place.renew_recap(message_id, None)


# For what another process forgot, and after a failure of Discord or of the store.
LOOK_EVERY_S = 600.0


class RecapRenewal:
    """The posted recaps of one database. `digests`: None if nothing is posted.

    *Ownership*: `running` owns its task.
    """

    def __init__(self, sessions: Sessions, digests: Digests | None) -> None:
        self._sessions = sessions
        self._digests = digests
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Somebody was forgotten: look soon. Does not wait."""
        self._wake.set()

    @asynccontextmanager
    async def running(self, place_of: Callable[[int, int], Place | None]) -> AsyncIterator[None]:
        """Renew recaps for the duration of the block. `place_of`: returns a voice channel by its server and id."""
        async with background_task(self.run(place_of), name="recap-renewal"):
            yield

    async def run(self, place_of: Callable[[int, int], Place | None]) -> None:
        """Renew what is marked, until cancelled. *Cancellation* is safe at any point."""
        while True:
            self._wake.clear()
            try:
                await self.run_once(place_of)
            except StoreError as error:
                log.warning("recaps_not_renewed", problem=error)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._wake.wait()

    async def run_once(self, place_of: Callable[[int, int], Place | None]) -> None:
        """Renew what is marked now. A channel that is not there at the moment is tried again, and so is a session that
        cannot be read. Raises `StoreError`.
        """
        if self._digests is None:
            return
        for stale in await self._sessions.stale_recaps():
            session = stale.session
            if session.guild_id is None or session.channel_id is None:
                continue
            place = place_of(session.guild_id, session.channel_id)
            if place is None:
                continue
            try:
                digest = await self._digests.of(session, model_timeout_s=0.0)
            except UnreadableRowError as error:
                log.warning("recap_not_renewed", session_id=session.id, problem=error)
                continue
            left = digest if digest.turn_count >= LEAST_SAID else None
            if await place.renew_recap(stale.message_id, left):
                await self._sessions.recap_renewed(stale, deleted=left is None)
                log.info("recap_renewed", session_id=session.id, deleted=left is None)


class TranscriptExpiry:
    """The posted transcripts of one database. `sleep`: waits for so many seconds.

    *Ownership*: `running` owns its task.
    """

    def __init__(self, posted: PostedTranscripts, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._posted = posted
        self._sleep = sleep

    @asynccontextmanager
    async def running(self, delete_message: DeleteMessage) -> AsyncIterator[None]:
        """Delete what is outdated for the duration of the block."""
        async with background_task(self._run(delete_message), name="transcript-expiry"):
            yield

    async def _run(self, delete_message: DeleteMessage) -> None:
        while True:
            try:
                await self.run_once(delete_message)
            except StoreError as error:
                log.warning("transcripts_not_deleted", problem=error)
            await self._sleep(LOOK_EVERY_S)

    async def run_once(self, delete_message: DeleteMessage) -> None:
        """Delete what is outdated now. What Discord refuses is tried again. Raises `StoreError`."""
        count = 0
        for each in await self._posted.outdated():
            if await delete_message(each.guild_id, each.channel_id, each.message_id):
                await self._posted.deleted(each)
                count += 1
        if count:
            log.info("transcripts_deleted", message_count=count)
