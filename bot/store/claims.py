"""Fencing: each start of a room claims its server and gets a number; writes with an older number are refused.

A name or a lock says who should run a room. It cannot stop a process that was frozen, or cut off from the others, and
comes back while another one runs the room: that process does not know. So the database decides. A claim raises the
server's number, and every write transaction of a room first compares its own number, in the same transaction.

There is one number for each server and not for each channel, because Discord gives a bot one voice connection in each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import select

from bot.store.dialects.upsert import insert_into
from bot.store.tables import room_claims
from bot.texts.text import Text
from compaction.errors import StaleOwnerError, StoreError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database

log = structlog.get_logger()

STALE = Text(
    "Another process of this bot has taken over my room on this server, so I have ended mine; what was said before is "
    "kept. Let one bot alone use a database."
)

_NUMBER = "SELECT number FROM room_claims WHERE guild_id = :guild"


@dataclass(frozen=True, slots=True)
class RoomClaim:
    """A server's room is run by the holder of this, until somebody has a higher number."""

    guild_id: int
    number: int


async def claim_room(connection: AsyncConnection, guild_id: int, *, after: int | None = None) -> RoomClaim:
    """Take over the room of a server, inside a write transaction: all older claims are stale once it commits.

    `after`: the newest number when it was decided who runs the room. Raises `StaleOwnerError` if another one has been
    given since, so that a process which was given up before it had a claim does not take the room from the next one.
    """
    if after is not None and await _number(connection, guild_id) != after:
        raise StaleOwnerError(STALE)
    first = insert_into(connection, room_claims).values(guild_id=guild_id, number=1)
    raised = first.on_conflict_do_update(
        index_elements=[room_claims.c.guild_id], set_={"number": room_claims.c.number + 1}
    )
    await connection.execute(raised)
    return RoomClaim(guild_id, await _number(connection, guild_id))


async def refuse_stale(claim: RoomClaim, connection: AsyncConnection) -> None:
    """Raise `StaleOwnerError` unless the claim is the newest one of its server."""
    if await _number(connection, claim.guild_id) != claim.number:
        raise StaleOwnerError(STALE)


async def newest_claim(database: Database, guild_id: int) -> int:
    """Return the newest number of a server; 0: nobody has claimed its room yet. Raises `StoreError`."""
    found = await database.rows(_NUMBER, {"guild": guild_id})
    return max((int(number) for (number,) in found), default=0)


async def known_claim(database: Database, guild_id: int) -> int | None:
    """Return the newest number of a server; None if the database does not say."""
    try:
        return await newest_claim(database, guild_id)
    except StoreError as error:
        log.warning("claim_unread", guild_id=guild_id, problem=error)
        return None


async def check_claim(database: Database, claim: RoomClaim) -> None:
    """Raise `StaleOwnerError` unless the claim is the newest one of its server. Raises `StoreError`."""
    found = await database.rows(_NUMBER, {"guild": claim.guild_id})
    if [number for (number,) in found] != [claim.number]:
        raise StaleOwnerError(STALE)


def fenced(database: Database, claim: RoomClaim) -> Database:
    """Return the database for the room that holds `claim`: stale, it raises `StaleOwnerError` and writes nothing."""
    return database.checked(partial(refuse_stale, claim))


async def _number(connection: AsyncConnection, guild_id: int) -> int:
    wanted = select(room_claims.c.number).where(room_claims.c.guild_id == guild_id)
    return int(await connection.scalar(wanted) or 0)
