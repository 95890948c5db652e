"""Deletes whole sessions: those that ended before the retention time, and open ones that were never used.

Each session is one transaction, so that turns can be stored in
between; if one fails, the others go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, exists, func, select

from bot.shards import ONLY_SHARD
from bot.store.each_session import write_each
from bot.store.tables import notes, segments, sessions, turns
from compaction.model import SessionId

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.shards import Shards
    from bot.store.database import Database
    from bot.store.each_session import SessionResults


async def delete_expired_sessions(
    database: Database,
    *,
    before: float,
    keep: Collection[SessionId] = (),
    guild_id: int | None = None,
    shards: Shards = ONLY_SHARD,
) -> SessionResults[SessionId]:
    """Delete the sessions that ended before that time (UTC epoch seconds), with everything in them; return them.

    A session that a crash left open ended with its last turn. `keep`: sessions to leave alone. `guild_id`: only those
    of that server. `shards`: open sessions of other shards are left alone too. Raises `StoreError` if all would fail.
    """
    last_turn = select(func.max(turns.c.ended_at)).where(turns.c.session_id == sessions.c.id).scalar_subquery()
    ended_at = func.coalesce(sessions.c.ended_at, last_turn, sessions.c.started_at)
    expired = (ended_at < before) & sessions.c.id.not_in(sorted(keep))
    if guild_id is not None:
        expired &= sessions.c.guild_id == guild_id
    return await _delete_sessions(database, expired, shards)


async def delete_unused_sessions(
    database: Database, *, before: float, keep: Collection[SessionId] = (), shards: Shards = ONLY_SHARD
) -> SessionResults[SessionId]:
    """Delete the open sessions of channels that began before that time and in which nothing was kept; return them.

    They are of rooms that never joined, and that could not delete them because the database failed (`bot.room.room`).
    `keep`, `shards`, errors: see `delete_expired_sessions`.
    """
    of_session = (exists().where(each.c.session_id == sessions.c.id) for each in (turns, segments, notes))
    unused = and_(
        sessions.c.ended_at.is_(None),
        sessions.c.channel_id.is_not(None),
        sessions.c.started_at < before,
        sessions.c.id.not_in(sorted(keep)),
        *(~each for each in of_session),
    )
    return await _delete_sessions(database, unused, shards)


async def _delete_sessions(
    database: Database, chosen: ColumnElement[bool], shards: Shards
) -> SessionResults[SessionId]:
    async with database.reading() as connection:
        if not shards.is_whole:
            chosen &= sessions.c.id.not_in(await _open_elsewhere(connection, shards))
        names = (await connection.execute(select(sessions.c.id).where(chosen))).scalars().all()

    async def drop(connection: AsyncConnection, session_id: SessionId) -> SessionId:
        await connection.execute(delete(sessions).where(sessions.c.id == session_id, chosen))
        return session_id

    return await write_each(database, map(SessionId, names), drop)


async def _open_elsewhere(connection: AsyncConnection, shards: Shards) -> list[str]:
    """Return the open sessions of servers that other processes serve."""
    channels = (sessions.c.ended_at.is_(None), sessions.c.guild_id.is_not(None))
    found = await connection.execute(select(sessions.c.id, sessions.c.guild_id).where(*channels))
    return [row.id for row in found if not shards.serves(row.guild_id)]
