"""Renews posted recaps in which words were forgotten: by /forget-me, or by `roomtone memory forget` beside the bot.

The store marks them in the transaction that forgets. A recap is made anew of what is left, without a model, and edited
in; one of which too little is left is deleted.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task
from bot.room.recap import LEAST_SAID
from bot.store.rows import UnreadableRowError
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from bot.channel.port import Place
    from bot.memory.digests import Digests
    from bot.store.sessions import Sessions

log = structlog.get_logger()

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
