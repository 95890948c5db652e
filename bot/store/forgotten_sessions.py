"""The list of sessions in which something was forgotten, by keyed digests of their ids.

The log loses what it had of such a session. Open rooms learn from it that what they are making may tell of something
that was forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from sqlalchemy import case, select

from bot.store.inserts import insert_into
from bot.store.tables import forgotten_sessions

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from bot.store.forgetting_key import ForgettingKey
    from compaction.model import SessionId

# Higher than any turn: what was made of the session stays.
NOTHING_MADE = 2**31


async def list_session(
    connection: AsyncConnection, key: ForgettingKey, session_id: SessionId, *, from_seq: int, at: float
) -> None:
    """Note that what was made of a session's turns from `from_seq` on, before `at`, was forgotten.

    Call it inside a write transaction. The time of a session rises with each call, also if the clock was set back: open
    rooms and restored backups learn from it that more was forgotten.
    """
    row = insert_into(connection, forgotten_sessions).values(digest=key.session(session_id), from_seq=from_seq, at=at)
    stored = forgotten_sessions.c
    earlier = case((stored.from_seq < row.excluded.from_seq, stored.from_seq), else_=row.excluded.from_seq)
    later = case((stored.at < row.excluded.at, row.excluded.at), else_=stored.at + 1)
    await connection.execute(
        row.on_conflict_do_update(index_elements=["digest"], set_={"from_seq": earlier, "at": later})
    )


async def listed_at(connection: AsyncConnection, key: ForgettingKey, session_id: SessionId) -> float | None:
    """Return the time of the last `list_session` of a session; None: there was none."""
    listed = select(forgotten_sessions.c.at).where(forgotten_sessions.c.digest == key.session(session_id))
    at: float | None = await connection.scalar(listed)
    return at


@dataclass(frozen=True, slots=True)
class ForgottenTimes:
    """When something was last forgotten in each session, by the session's digest. UTC epoch seconds."""

    key: ForgettingKey
    times: dict[str, float]
    _by_id: dict[str, float] = field(init=False, default_factory=dict)

    def last(self, session_id: str) -> float:
        """Return when something was last forgotten in a session; long ago if nothing was."""
        if session_id not in self._by_id:
            self._by_id[session_id] = self.times.get(self.key.session(session_id), -inf)
        return self._by_id[session_id]


async def forgotten_times(database: Database) -> ForgottenTimes:
    """Return when something was last forgotten in each session. Raises `StoreError`."""
    listed = select(forgotten_sessions).where(forgotten_sessions.c.from_seq < NOTHING_MADE)
    async with database.reading() as connection:
        return ForgottenTimes(database.key, {row.digest: row.at for row in await connection.execute(listed)})
