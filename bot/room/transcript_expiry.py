"""Deletes on Discord what a session has posted there, once the session is deleted, for its age or by the operator."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from bot.store.posted_transcripts import PostedTranscripts

    # Deletes a message by its server, channel and id. Returns whether it is gone; None: of another process's server.
    DeleteMessage = Callable[[int, int, int], Awaitable[bool | None]]

log = structlog.get_logger()

LOOK_EVERY_S = 600.0


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
