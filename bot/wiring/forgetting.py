"""Lets the open rooms of the process drop what they still hold of a person who is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from weakref import WeakSet

    from bot.memory.upkeep import MemoryUpkeep
    from bot.participation.guild_participation import GuildParticipations
    from bot.server_settings import ServerSettingsBook
    from compaction.model import SessionId


class ForgettingRooms:
    """Implements `bot.memory.personal_data.OpenRooms`. `upkeeps`: those of the open rooms.

    `servers`: their settings may have named the person. `on_forgotten`: called when the rooms have taken over that
    somebody was forgotten.
    """

    def __init__(
        self,
        participation: GuildParticipations,
        upkeeps: WeakSet[MemoryUpkeep],
        servers: ServerSettingsBook,
        *,
        on_forgotten: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_forgotten = on_forgotten
        self._participation = participation
        self._upkeeps = upkeeps
        self._servers = servers

    async def before_forgetting(self, person_id: str) -> None:
        """See `OpenRooms.before_forgetting`."""
        if person_id.isdecimal():
            await self._participation.on_forgetting(int(person_id))

    async def after_forgetting(self, sessions: Collection[SessionId]) -> None:
        """See `OpenRooms.after_forgetting`. Raises `StoreError`."""
        await self._servers.take_over()
        for upkeep in list(self._upkeeps):
            await upkeep.refresh()
        await self._participation.on_forgotten(sessions)
        self._on_forgotten()
