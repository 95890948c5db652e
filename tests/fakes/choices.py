"""The stores of guilds' choices and opt-outs, in memory."""

from __future__ import annotations

from bot.guild import GuildChoice
from compaction.errors import StoreError


class FakeGuildChoices:
    """`bot.store.guilds.GuildStore` without a database. `broken`: everything fails."""

    def __init__(self) -> None:
        self.stored: dict[int, GuildChoice] = {}
        self.by: list[int] = []
        self.broken = False

    async def choice(self, guild_id: int) -> GuildChoice:
        """Return what the guild has chosen."""
        if self.broken:
            raise StoreError("The disk is full. Make room.")
        return self.stored.get(guild_id, GuildChoice())

    async def choose(self, guild_id: int, choice: GuildChoice, *, by: int) -> None:
        """Keep it."""
        if self.broken:
            raise StoreError("The disk is full. Make room.")
        self.stored[guild_id] = choice
        self.by.append(by)


class FakeOptOuts:
    """`bot.store.guilds.OptOutStore` without a database."""

    def __init__(self) -> None:
        self.out: dict[int, frozenset[int]] = {}

    async def of(self, guild_id: int) -> frozenset[int]:
        """Return who does not want to be heard there."""
        return self.out.get(guild_id, frozenset())

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Keep it."""
        known = self.out.get(guild_id, frozenset())
        self.out[guild_id] = known | {person_id} if out else known - {person_id}
