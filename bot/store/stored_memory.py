"""Reads all that a session goes on with: its window, segments, notes, speakers and state.

A row that cannot be read raises `UnreadableRowError`: the database is damaged, and a backup is to be restored.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, text

from bot.store import rows
from bot.store.speakers import quotable_speakers
from bot.store.tables import notes, segments, sessions, turns
from compaction.model import CompactionState, Seq
from compaction.ports import StoredMemory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.dialects.port import DialectSql
    from compaction.model import Note, SessionId, Turn


async def read_memory(connection: AsyncConnection, sql: DialectSql, session_id: SessionId) -> StoredMemory:
    """Return everything that a restart needs. The memory of an unknown session is empty."""
    session = await session_row(connection, session_id)
    cursor = 0 if session is None else session.cursor
    last = await connection.scalar(select(func.max(turns.c.seq)).where(turns.c.session_id == session_id))
    window = await _turn_rows(connection, session_id, start=cursor, end=None)
    kept = await segment_rows(connection, session_id)
    of_notes = select(notes).where(notes.c.session_id == session_id, notes.c.status.in_(("live", "pending")))
    seen = (await connection.execute(of_notes.order_by(notes.c.position))).all()
    speakers = await _speakers(connection, sql, session_id)
    quotable = await quotable_speakers(connection, sql, session_id)

    def make() -> StoredMemory:
        live, pending = (
            tuple(rows.note_from_row(row) for row in seen if row.status == each) for each in ("live", "pending")
        )
        return StoredMemory(
            total_turns=0 if last is None else last + 1,
            state=_state(session, pending),
            window=tuple(map(rows.turn_from_row, window)),
            segments=tuple(map(rows.segment_from_row, kept)),
            live_notes=live,
            ended=session is not None and session.ended_at is not None,
            speakers=speakers,
            quotable=quotable,
        )

    # In a thread: a long session has thousands of rows.
    return await asyncio.to_thread(make)


async def segment_rows(connection: AsyncConnection, session_id: SessionId) -> Sequence[Row[Any]]:
    """Return the stored segments of a session, also the closing one, in order."""
    wanted = select(segments).where(segments.c.session_id == session_id)
    return (await connection.execute(wanted.order_by(segments.c.start_seq, segments.c.position))).all()


async def read_turns(
    connection: AsyncConnection, session_id: SessionId, *, start: int, end: int | None
) -> tuple[Turn, ...]:
    """Return the stored turns with `start <= seq < end`, in order."""
    found = await _turn_rows(connection, session_id, start=start, end=end)
    # Commands read whole sessions: decoding ten thousand turns takes a fifth of a second.
    return await asyncio.to_thread(lambda: tuple(map(rows.turn_from_row, found)))


async def session_row(connection: AsyncConnection, session_id: SessionId) -> Row[Any] | None:
    """Return the row of a session, or None."""
    return (await connection.execute(select(sessions).where(sessions.c.id == session_id))).one_or_none()


async def _turn_rows(
    connection: AsyncConnection, session_id: SessionId, *, start: int, end: int | None
) -> Sequence[Row[Any]]:
    wanted = select(turns).where(turns.c.session_id == session_id, turns.c.seq >= start).order_by(turns.c.seq)
    if end is not None:
        wanted = wanted.where(turns.c.seq < end)
    return (await connection.execute(wanted)).all()


async def _speakers(connection: AsyncConnection, sql: DialectSql, session_id: SessionId) -> tuple[tuple[str, str], ...]:
    """Return id and name of each speaker, as they first appeared, and then of whose screens there are notes."""
    of_session = select(notes.c.person_id, notes.c.who).where(notes.c.session_id == session_id)
    shown = await connection.execute(of_session.where(notes.c.person_id.is_not(None)).order_by(notes.c.position))
    found = await connection.execute(text(sql.speakers), {"session": session_id})
    # As JSON, because a name may have characters that no encoding has.
    spoke = [(str(json.loads(speaker_id)), str(json.loads(name))) for speaker_id, name in found]
    return tuple(dict.fromkeys((*spoke, *((row.person_id, row.who) for row in shown))))


def _state(session: Row[Any] | None, pending: tuple[Note, ...]) -> CompactionState:
    if session is None:
        return CompactionState(pending_notes=pending)
    return CompactionState(
        cursor=Seq(session.cursor),
        revision=session.revision,
        summary=session.summary,
        last_at=session.last_at,
        pending_notes=pending,
    )
