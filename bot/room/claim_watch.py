"""Watches whether a room still has its Discord server, or another process has started a room there since."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from compaction.errors import StaleOwnerError, StoreError

if TYPE_CHECKING:
    from bot.clock import Clock
    from bot.store.claims import RoomClaim
    from bot.store.sessions import Sessions

# How long a room in which nobody says anything may take to find out.
CHECK_CLAIM_S = 5.0
# A database that answers later is left alone until the next check.
ANSWER_WITHIN_S = 1.0


class ClaimWatch:
    """The watch of one room over its `claim`. *Ownership*: the room runs `run` in a task."""

    def __init__(self, sessions: Sessions, claim: RoomClaim, clock: Clock) -> None:
        self._sessions = sessions
        self._claim = claim
        self._clock = clock

    async def run(self) -> None:
        """Check at intervals. Never returns. Raises `StaleOwnerError` once another process runs the server's room."""
        while True:
            await self._clock.sleep(CHECK_CLAIM_S)
            await self.check()

    async def check(self) -> None:
        """Raise `StaleOwnerError` if another process runs the server's room now."""
        # A room whose database does not answer goes on; `RoomFaults` tells of that.
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._sessions.check(self._claim)

    async def is_owner(self) -> bool:
        """Return whether the room may change the bot's voice state: a stale room's leaving would deafen the new one."""
        try:
            await self.check()
        except StaleOwnerError:
            return False
        return True
