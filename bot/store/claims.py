"""Fencing: each start of a room claims its server and gets a number; writes with an older number are refused.

A name or a lock says who should run a room. It cannot stop a process that was frozen, or cut off from the others, and
comes back while another one runs the room: that process does not know. So the database decides. A claim raises the
server's number, and every write transaction of a room first compares its own number, in the same transaction.

On PostgreSQL the row of a server's number is also the lock for all that is written of that server, by rooms and by
whoever forgets or deletes there. Writes of different servers wait for each other nowhere. SQLite has one writer anyway.

There is one number for each server and not for each channel, because Discord gives a bot one voice connection in each.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import select, update

from bot.store.inserts import add_once
from bot.store.tables import room_claims, sessions
from bot.texts.text import Text
from compaction.errors import StaleOwnerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.model import SessionId

log = structlog.get_logger()

STALE = Text(
    "Another copy of this bot works on this server now, so I have stopped here. What was said before "
    "is safe. The owner of this bot must start only one copy with the same database."
)

_NUMBER = "SELECT number FROM room_claims WHERE guild_id = :guild"


@dataclass(frozen=True, slots=True)
class RoomClaim:
    """A server's room is run by the holder of this, until somebody has a higher number."""

    guild_id: int
    number: int


async def claim_room(connection: AsyncConnection, guild_id: int) -> RoomClaim:
    """Take over the room of a server, inside a write transaction: all older claims are stale once it commits."""
    newest = await lock_server(connection, guild_id)
    here = room_claims.c.guild_id == guild_id
    await connection.execute(update(room_claims).where(here).values(number=newest + 1))
    return RoomClaim(guild_id, newest + 1)


async def lock_server(connection: AsyncConnection, guild_id: int | None) -> int:
    """Wait until nobody else writes for a server, inside a write transaction. Returns its newest number.

    None: what belongs to no server, such as imported sessions and the list of who was forgotten.
    """
    row = guild_id or 0
    await add_once(connection, room_claims, {"guild_id": row, "number": 0})
    return await _number(connection, row)


@asynccontextmanager
async def writing_session(database: Database, session_id: SessionId) -> AsyncIterator[AsyncConnection]:
    """Yield a write transaction in which nobody else writes for the server of a session. Raises `StoreError`."""
    async with database.writing() as connection:
        await lock_server(
            connection, await connection.scalar(select(sessions.c.guild_id).where(sessions.c.id == session_id))
        )
        yield connection


async def wait_for_writes(database: Database) -> None:
    """Wait until the transactions have ended that write for servers with open sessions now. Raises `StoreError`."""
    is_open = sessions.c.ended_at.is_(None)
    async with database.reading() as connection:
        guilds = (await connection.scalars(select(sessions.c.guild_id).where(is_open).distinct())).all()
    for guild_id in guilds:
        async with database.writing() as connection:
            await lock_server(connection, guild_id)


async def refuse_stale(claim: RoomClaim, connection: AsyncConnection) -> None:
    """Raise `StaleOwnerError` unless the claim is the newest one of its server."""
    if await _number(connection, claim.guild_id) != claim.number:
        raise StaleOwnerError(STALE)


async def check_claim(database: Database, claim: RoomClaim) -> None:
    """Raise `StaleOwnerError` unless the claim is the newest one of its server. Raises `StoreError`."""
    found = await database.rows(_NUMBER, {"guild": claim.guild_id})
    if [number for (number,) in found] != [claim.number]:
        raise StaleOwnerError(STALE)


def fenced(database: Database, claim: RoomClaim) -> Database:
    """Return the database for the room that holds `claim`: stale, it raises `StaleOwnerError` and writes nothing.

    Of what is written through it, one transaction at a time waits for the server's row.
    """
    return database.checked(partial(refuse_stale, claim), server=claim.guild_id)


async def _number(connection: AsyncConnection, guild_id: int) -> int:
    wanted = select(room_claims.c.number).where(room_claims.c.guild_id == guild_id).with_for_update()
    return int(await connection.scalar(wanted) or 0)
