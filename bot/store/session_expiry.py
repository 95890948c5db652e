"""Deletes whole sessions that ended before the retention time, each in a transaction of its own: turns can be stored in
between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select

from bot.shards import ONLY_SHARD
from bot.store.claims import writing_session
from bot.store.tables import sessions, turns
from compaction.model import SessionId

if TYPE_CHECKING:
    from collections.abc import Collection

    from bot.shards import Shards
    from bot.store.database import Database


async def delete_expired_sessions(
    database: Database,
    *,
    before: float,
    keep: Collection[SessionId] = (),
    guild_id: int | None = None,
    shards: Shards = ONLY_SHARD,
) -> tuple[SessionId, ...]:
    """Delete the sessions that ended before that time (UTC epoch seconds), with everything in them; return them.

    A session that a crash left open ended with its last turn. `keep`: sessions to leave alone. `guild_id`: only those
    of that server. `shards`: only those of the servers that this process serves. Raises `StoreError`.
    """
    last_turn = select(func.max(turns.c.ended_at)).where(turns.c.session_id == sessions.c.id).scalar_subquery()
    ended_at = func.coalesce(sessions.c.ended_at, last_turn, sessions.c.started_at)
    expired = (ended_at < before) & sessions.c.id.not_in(sorted(keep))
    if guild_id is not None:
        expired &= sessions.c.guild_id == guild_id
    async with database.reading() as connection:
        found = await connection.execute(select(sessions.c.id, sessions.c.guild_id).where(expired))
        # Those of no server count as those of server 0.
        names = [SessionId(row.id) for row in found if shards.serves(row.guild_id or 0)]
    for session_id in names:
        async with writing_session(database, session_id) as connection:
            await connection.execute(delete(sessions).where(sessions.c.id == session_id, expired))
    return tuple(names)
