"""Stores what each server has used (`bot.cost`), in slots of ten minutes, for 40 days."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, delete, func, select

from bot.cost import Cost
from bot.store.inserts import insert_into
from bot.store.tables import server_usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.store.database import Database

SLOT_S = 600
_AMOUNTS = tuple(field.name for field in fields(Cost))
# A month and some days.
KEPT_S = 40 * 86_400


class UsageStore:
    """What the servers of a database have used. Times are Unix seconds. Raises `StoreError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, used: Mapping[int, Cost], *, now: float) -> None:
        """Add what servers have used now, by their ids, and drop what is too old."""
        async with self._database.writing() as connection:
            for guild_id, cost in used.items():
                spent = asdict(cost)
                row = insert_into(connection, server_usage).values(guild_id=guild_id, slot=int(now // SLOT_S), **spent)
                sums = {name: server_usage.c[name] + row.excluded[name] for name in spent}
                await connection.execute(row.on_conflict_do_update(index_elements=["slot", "guild_id"], set_=sums))
            await connection.execute(delete(server_usage).where(server_usage.c.slot < (now - KEPT_S) // SLOT_S))

    async def slots_of(self, guild_id: int, *, since: float) -> tuple[tuple[float, Cost], ...]:
        """Return what a server has used since then: the end of each slot, and its cost, oldest first."""
        wanted = select(server_usage).where(server_usage.c.guild_id == guild_id, server_usage.c.slot >= since // SLOT_S)
        rows = await self._database.rows(wanted.order_by(server_usage.c.slot))
        return tuple(((row.slot + 1.0) * SLOT_S, _cost(row)) for row in rows)

    async def by_server(self, *, since: float) -> Mapping[int, Cost]:
        """Return what each server has used since the slot of that time, by its id."""
        used = (func.sum(server_usage.c[name]).label(name) for name in _AMOUNTS)
        wanted = select(server_usage.c.guild_id, *used).where(server_usage.c.slot >= since // SLOT_S)
        rows = await self._database.rows(wanted.group_by(server_usage.c.guild_id))
        return {row.guild_id: _cost(row) for row in rows}


def _cost(row: Row[Any]) -> Cost:
    # PostgreSQL adds up whole numbers to decimal ones.
    return Cost(int(row.calls), int(row.tokens), row.spoken_s, row.dollars)
