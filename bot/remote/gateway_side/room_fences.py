"""Fences lost rooms off: raises a server's claim in the database, and tells the newest one that a room may have."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from bot.store.claims import STALE, claim_room, newest_claim
from compaction.errors import StaleOwnerError, StoreError

if TYPE_CHECKING:
    from bot.store.database import Database
    from bot.store.dialects.port import BotLock

# How long the start of a room's next process may wait for it. That one's claim makes the lost one stale anyway.
FENCE_WITHIN_S = 2.0

log = structlog.get_logger()


class RoomFences:
    """The claims of rooms in other processes, for the gateway process that has `lock`. See `GatewayParts`."""

    def __init__(self, database: Database, lock: BotLock) -> None:
        self._database = database
        self._lock = lock
        # Servers of which nobody knows whether the last claim was raised.
        self._unfenced: set[int] = set()

    async def fence(self, guild_id: int) -> None:
        """Raise the server's claim, so that whatever a lost room still writes is refused. Never fails. Does nothing if
        another gateway process has the server by now, which may have taken the room back.
        """
        self._unfenced.add(guild_id)
        try:
            async with asyncio.timeout(FENCE_WITHIN_S):
                if not await self._lock.look():
                    async with self._database.writing() as connection:
                        await claim_room(connection, guild_id)
        except (StoreError, TimeoutError) as error:
            log.warning("room_not_fenced", guild_id=guild_id, error_class=type(error).__name__)
        else:
            self._unfenced.discard(guild_id)

    async def newest_claim(self, guild_id: int) -> int | None:
        """Return the server's newest claim; None if nobody knows it, or what became of the last `fence`.

        Raises `StaleOwnerError` if another gateway process has the server by now: no room begins here.
        """
        try:
            async with asyncio.timeout(FENCE_WITHIN_S):
                if await self._lock.look():
                    raise StaleOwnerError(STALE)
                if guild_id in self._unfenced:
                    self._unfenced.discard(guild_id)
                    return None
                return await newest_claim(self._database, guild_id)
        except (StoreError, TimeoutError) as error:
            log.warning("newest_claim_unknown", guild_id=guild_id, error_class=type(error).__name__)
            return None

    async def require_database(self) -> None:
        """Raise `StoreError` if the database does not answer."""
        try:
            async with asyncio.timeout(FENCE_WITHIN_S):
                await newest_claim(self._database, 0)
        except TimeoutError as error:
            raise self._database.dialect.failure(error) from error
