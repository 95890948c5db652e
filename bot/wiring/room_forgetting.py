"""Lets the open rooms drop what they still hold of a person who is forgotten."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from weakref import WeakSet

    from bot.memory.personal_data import RoomMemory
    from bot.participation.all_guilds import GuildParticipations
    from bot.server_settings import ServerSettingsBook
    from compaction.model import SessionId


class RoomForgetting:
    """Implements `bot.memory.personal_data.OpenRooms`. `upkeeps`: those of the open rooms.

    `servers`: their settings may have named the person. `on_forgotten`: called when the rooms have taken over that
    somebody was forgotten.
    """

    def __init__(
        self,
        participation: GuildParticipations,
        upkeeps: WeakSet[RoomMemory],
        servers: ServerSettingsBook,
        *,
        on_forgotten: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_forgotten = on_forgotten
        self._participation = participation
        self._upkeeps = upkeeps
        self._servers = servers

    async def before_forgetting(self, person_id: str) -> None:
        """See `OpenRooms.before_forgetting`. Raises `StoreError`."""
        if person_id.isdecimal():
            self._participation.on_forgetting(int(person_id))
        await asyncio.gather(*(upkeep.store_waiting() for upkeep in list(self._upkeeps)))

    async def after_forgetting(self, sessions: Collection[SessionId]) -> None:
        """See `OpenRooms.after_forgetting`. Raises `StoreError`."""
        try:
            await self._servers.take_over()
            await _read_memory_again(self._upkeeps)
        finally:
            # Also while the database is away: this drops what is on its way.
            self._participation.on_forgotten(sessions)
            self._on_forgotten()


async def _read_memory_again(upkeeps: WeakSet[RoomMemory]) -> None:
    """Let all open rooms read their memory again, at the same time."""
    await asyncio.gather(*(upkeep.refresh() for upkeep in list(upkeeps)))
