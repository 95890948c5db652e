"""A room's session, with the parts that were made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.channel.port import ListenRequest
    from bot.memory.upkeep import MemoryUpkeep
    from bot.participation.guild_participation import GuildParticipation
    from bot.screen.room import RoomScreens
    from bot.store.sessions import OpenedSession
    from compaction.model import SessionId
    from compaction.session import SessionMemory


@dataclass(frozen=True, slots=True)
class RoomSession:
    """A room's session and the parts that were made for it. `listen`: the bot only writes down there."""

    opened: OpenedSession
    memory: SessionMemory
    upkeep: MemoryUpkeep | None
    guild: GuildParticipation
    screens: RoomScreens | None
    listen: ListenRequest | None

    @property
    def id(self) -> SessionId:
        return self.opened.session.id
