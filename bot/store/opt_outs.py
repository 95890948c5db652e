"""Stores the people who opted out of being heard, on all servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, select

from bot.store.attendance import forget_attendance
from bot.store.tables import hearing_opt_outs

if TYPE_CHECKING:
    from bot.clock import Clock
    from bot.store.database import Database


class OptOutStore:
    """The people who opted out of being heard, on all servers. Raises `StoreError`. Safe for all tasks of one event
    loop.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, guild_id: int) -> frozenset[int]:
        wanted = select(hearing_opt_outs.c.person_id).where(hearing_opt_outs.c.guild_id == guild_id)
        return frozenset(await self._database.values(wanted))

    async def put(self, guild_id: int, person_id: int, *, out: bool) -> None:
        """Store that a person opts out of being heard in the guild (`out`), or in again."""
        same = and_(hearing_opt_outs.c.guild_id == guild_id, hearing_opt_outs.c.person_id == person_id)
        async with self._database.writing() as connection:
            await connection.execute(delete(hearing_opt_outs).where(same))
            if out:
                await forget_attendance(connection, str(person_id), guild_id=guild_id)
                values = {"guild_id": guild_id, "person_id": person_id, "since": self._clock.now()}
                await connection.execute(hearing_opt_outs.insert().values(values))
