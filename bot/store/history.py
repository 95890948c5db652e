"""Reads stored sessions, and renders a session's summary again after changes.

Raises `StoreError`.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from sqlalchemy import func, select, update

from bot.store import rows
from bot.store.speakers import quotable_speakers
from bot.store.stored_memory import segment_rows
from bot.store.tables import notes, sessions, turns
from compaction.summary.folded import summary_of

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.model import Note, Segment, SessionId


class SessionHistory:
    """Reads the sessions in an open `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def segments(self, session_id: SessionId) -> tuple[Segment, ...]:
        """Return the present segments of a session, including the closing one."""
        async with self._database.reading() as connection:
            return await segments_of(connection, session_id)

    async def latest_notes(self, session_id: SessionId, *, limit: int) -> tuple[Note, ...]:
        """Return the last notes of a session, oldest first."""
        wanted = select(notes).where(notes.c.session_id == session_id).order_by(notes.c.position.desc()).limit(limit)
        async with self._database.reading() as connection:
            return tuple(reversed([rows.note_from_row(row) for row in await connection.execute(wanted)]))

    async def summary(self, session_id: SessionId) -> str | None:
        """Return the summary of a session as it is now."""
        wanted = select(sessions.c.summary).where(sessions.c.id == session_id)
        async with self._database.reading() as connection:
            found: str | None = await connection.scalar(wanted)
            return found

    async def oldest_turn(self, session_id: SessionId) -> int | None:
        """Return the seq of the oldest turn that is stored, also one without words; None if there is none. Those before
        it were deleted for their age.
        """
        async with self._database.reading() as connection:
            found: int | None = await connection.scalar(
                select(func.min(turns.c.seq)).where(turns.c.session_id == session_id)
            )
            return found

    async def said_between(self, session_id: SessionId) -> tuple[float, float] | None:
        """Return when the first turn of a session began and when the last one ended, in UTC epoch seconds; None if the
        first ones were deleted for their age, or there are none.
        """
        spoken = select(func.min(turns.c.seq), func.min(turns.c.started_at), func.max(turns.c.ended_at)).where(
            turns.c.session_id == session_id
        )
        async with self._database.reading() as connection:
            first, since, until = (await connection.execute(spoken)).one()
        return (since, until) if first == 0 else None

    async def first_speakers(self, session_id: SessionId) -> dict[int, str]:
        """Return the id of whoever speaks first in each turn, by seq. Forgotten turns are missing."""
        found = await self._database.rows(self._database.sql.first_speakers, {"session": session_id})
        return {int(seq): str(json.loads(speaker_id)) for seq, speaker_id in found if speaker_id is not None}

    async def speakers(self, session_id: SessionId) -> dict[str, str]:
        """Return everybody who spoke in a session: id, and the name they had first."""
        found = await self._database.rows(self._database.sql.speakers, {"session": session_id})
        named: dict[str, str] = {}
        for speaker_id, name in found:
            named.setdefault(str(json.loads(speaker_id)), str(json.loads(name)))
        return named

    async def quotable(self, session_id: SessionId, people: frozenset[str]) -> frozenset[str]:
        """Return those of these people who spoke in a session, or whom the bot may have quoted there."""
        spoke = people.intersection(await self.speakers(session_id))
        async with self._database.reading() as connection:
            quoted = await quotable_speakers(connection, self._database.sql, session_id, among=people - spoke)
        return spoke | quoted


async def segments_of(connection: AsyncConnection, session_id: SessionId) -> tuple[Segment, ...]:
    """Return the segments of a session, including the closing one, in order."""
    found = await segment_rows(connection, session_id)
    # A long session has a thousand.
    return await asyncio.to_thread(lambda: tuple(map(rows.segment_from_row, found)))


async def rerender_summary(connection: AsyncConnection, session_id: SessionId) -> None:
    """Render and store the session's summary again, after its segments were pruned or forgotten.

    Call it inside a write transaction. It raises the revision, so that an open room takes over the new summary with its
    next landing.
    """
    session = (await connection.execute(select(sessions).where(sessions.c.id == session_id))).one()
    found = await segment_rows(connection, session_id)

    def composed() -> str | None:
        folded = [each for each in map(rows.segment_from_row, found) if not each.closing]
        return summary_of(folded, newest=folded[-1] if folded else None)

    # A long session takes a tenth of a second; in a thread it does not delay the audio of other rooms.
    summary = await asyncio.to_thread(composed)
    await connection.execute(
        update(sessions).where(sessions.c.id == session_id).values(summary=summary, revision=session.revision + 1)
    )
