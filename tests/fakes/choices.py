"""In-memory stores for the choices of guilds and for opt-outs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.guild import GuildChoice
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable


class FakeGuildChoices:
    """Implements `bot.store.guilds.GuildStore` without a database. If `broken` is set, every operation fails."""

    def __init__(self) -> None:
        self.stored: dict[int, GuildChoice] = {}
        self.by: list[int] = []
        self.broken = False

    async def choice(self, guild_id: int) -> GuildChoice:
        """Return the guild's choice."""
        if self.broken:
            raise StoreError("The disk is full. Make room.")
        return self.stored.get(guild_id, GuildChoice())

    async def choose(self, guild_id: int, change: Callable[[GuildChoice], GuildChoice], *, by: int) -> GuildChoice:
        """Store the guild's choice and the id of the person who made it."""
        choice = self.stored[guild_id] = change(await self.choice(guild_id))
        self.by.append(by)
        return choice


class FakeOptOuts:
    """Implements `bot.store.guilds.OptOutStore` without a database. If `broken` is set, every operation fails."""

    def __init__(self) -> None:
        self.out: dict[int, frozenset[int]] = {}
        self.broken = False

    async def of(self, guild_id: int) -> frozenset[int]:
        """Return the ids of the people in this guild who do not want to be heard."""
        self._check()
        return self.out.get(guild_id, frozenset())

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store whether this person has opted out."""
        self._check()
        known = self.out.get(guild_id, frozenset())
        self.out[guild_id] = known | {person_id} if out else known - {person_id}

    def _check(self) -> None:
        if self.broken:
            raise StoreError("The disk is full. Make room.")
