"""Reads stored sessions: what a session goes on with after a restart, and its history. Renders summaries anew.

Raises `StoreError`. A row that cannot be read raises `UnreadableRowError`: the database is damaged, and a backup is to
be restored.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Row, func, select, text, update

from bot.store import rows
from bot.store.speakers import quotable_speakers
from bot.store.tables import notes, segments, sessions, turns
from compaction.model import CompactionState, Note, Segment, Seq, SessionId, Turn
from compaction.ports import StoredMemory
from compaction.summary.folded import summary_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from bot.store.dialects.port import DialectSql


class SessionHistory:
    """Reads the sessions in an open `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def topics(self, session_ids: Collection[SessionId]) -> dict[SessionId, str]:
        """Return what the newest folded turns of each session were about. Sessions in which nothing was folded are
        missing.
        """
        of_these = segments.c.session_id.in_(sorted(session_ids)) & (segments.c.gist != "")
        wanted = select(segments.c.session_id, segments.c.gist).where(of_these)
        found = await self._database.rows(wanted.order_by(segments.c.start_seq, segments.c.position))
        return {SessionId(row.session_id): row.gist for row in found}

    async def segments(self, session_id: SessionId) -> tuple[Segment, ...]:
        """Return the present segments of a session, including the closing one."""
        async with self._database.reading() as connection:
            return await segments_of(connection, session_id)

    async def latest_notes(self, session_id: SessionId, *, limit: int) -> tuple[Note, ...]:
        """Return the last notes of a session, oldest first."""
        wanted = select(notes).where(notes.c.session_id == session_id).order_by(notes.c.position.desc()).limit(limit)
        return tuple(map(rows.note_from_row, reversed(await self._database.rows(wanted))))

    async def summary(self, session_id: SessionId) -> str | None:
        """Return the summary of a session as it is now."""
        wanted = select(sessions.c.summary).where(sessions.c.id == session_id)
        found: str | None = await self._database.value(wanted)
        return found

    async def said_between(self, session_id: SessionId) -> tuple[float, float] | None:
        """Return when the first turn of a session began and when the last one ended, in UTC epoch seconds; None if
        there are none.
        """
        spoken = select(func.min(turns.c.started_at), func.max(turns.c.ended_at))
        ((since, until),) = await self._database.rows(spoken.where(turns.c.session_id == session_id))
        return None if since is None else (since, until)

    async def first_speakers(self, session_id: SessionId) -> dict[int, str]:
        """Return the id of whoever speaks first in each turn, by seq. Forgotten turns are missing."""
        found = await self._database.rows(self._database.sql.first_speakers, {"session": session_id})
        return {int(seq): str(json.loads(speaker_id)) for seq, speaker_id in found if speaker_id is not None}

    async def quotable(self, session_id: SessionId, people: frozenset[str]) -> frozenset[str]:
        """Return those of these people who spoke in a session, or whom the bot may have quoted there."""
        async with self._database.reading() as connection:
            named = await _spoke(connection, self._database.sql, session_id)
            spoke = people.intersection(speaker_id for speaker_id, _ in named)
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


async def read_memory(connection: AsyncConnection, sql: DialectSql, session_id: SessionId) -> StoredMemory:
    """Return everything that a restart needs. The memory of an unknown session is empty."""
    session = await session_row(connection, session_id)
    cursor = 0 if session is None else session.cursor
    last = await connection.scalar(select(func.max(turns.c.seq)).where(turns.c.session_id == session_id))
    window = await turns_where(connection, turns.c.session_id == session_id, turns.c.seq >= cursor)
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
            window=window,
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


async def read_turns(connection: AsyncConnection, session_id: SessionId, *, start: int, end: int) -> tuple[Turn, ...]:
    """Return the stored turns with `start <= seq < end`, in order."""
    return await turns_where(connection, turns.c.session_id == session_id, turns.c.seq >= start, turns.c.seq < end)


async def turns_where(connection: AsyncConnection, *conditions: ColumnElement[bool]) -> tuple[Turn, ...]:
    """Return the stored turns that fit, in order."""
    found = (await connection.execute(select(turns).where(*conditions).order_by(turns.c.seq))).all()
    # In a thread: decoding the ten thousand turns of a long session takes a fifth of a second.
    return await asyncio.to_thread(lambda: tuple(map(rows.turn_from_row, found)))


async def session_row(connection: AsyncConnection, session_id: SessionId) -> Row[Any] | None:
    """Return the row of a session, or None."""
    return (await connection.execute(select(sessions).where(sessions.c.id == session_id))).one_or_none()


async def _speakers(connection: AsyncConnection, sql: DialectSql, session_id: SessionId) -> tuple[tuple[str, str], ...]:
    """Return id and name of each speaker, as they first appeared, and then of whose screens there are notes."""
    of_session = select(notes.c.person_id, notes.c.who).where(notes.c.session_id == session_id)
    shown = await connection.execute(of_session.where(notes.c.person_id.is_not(None)).order_by(notes.c.position))
    spoke = await _spoke(connection, sql, session_id)
    return tuple(dict.fromkeys((*spoke, *((row.person_id, row.who) for row in shown))))


async def _spoke(connection: AsyncConnection, sql: DialectSql, session_id: SessionId) -> list[tuple[str, str]]:
    """Return id and name of each speaker, as they first appeared."""
    found = await connection.execute(text(sql.speakers), {"session": session_id})
    # As JSON, because a name may have characters that no encoding has.
    return [(str(json.loads(speaker_id)), str(json.loads(name))) for speaker_id, name in found]


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
