"""A session's summary over time: reads earlier revisions, and renders the summary again after changes.

Raises `StoreError`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select, update

from bot.store import rows
from bot.store.inserts import add_once
from bot.store.speakers import quotable_speakers
from bot.store.stored_memory import read_turns, segment_rows
from bot.store.tables import landings, notes, sessions, turns
from bot.store.thread_work import in_thread
from compaction.model import SegmentId
from compaction.summary.folded import summary_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.model import Note, Segment, SessionId


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """A session at one revision. `summary`: None if there was none, or if it is lost; then `known` is False."""

    summary: str | None
    known: bool
    segments: tuple[Segment, ...]


class SessionHistory:
    """Reads earlier states of the sessions in an open `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def snapshot(self, session_id: SessionId, revision: int, cursor: int) -> SessionSnapshot:
        """Return the session as it was at `revision`, when the turns before `cursor` were folded."""
        async with self._database.reading() as connection:
            landed = (
                await connection.execute(
                    select(landings)
                    .where(landings.c.session_id == session_id, landings.c.revision <= revision)
                    .order_by(landings.c.revision)
                )
            ).all()
            stored = [each for each in await segments_of(connection, session_id) if not each.closing]
        last = next((row for row in reversed(landed) if row.revision == revision), None)
        by_then = {SegmentId(row.segment_id) for row in landed if row.segment_id is not None}
        # A session that was imported has no landings: there the range of a segment decides.
        present = tuple(each for each in stored if each.id in by_then or (last is None and each.end <= cursor))
        return SessionSnapshot(
            None if last is None else last.summary,
            last is not None and last.summary is not None,
            present,
        )

    async def segments(self, session_id: SessionId) -> tuple[Segment, ...]:
        """Return the present segments of a session, including the closing one."""
        async with self._database.reading() as connection:
            return await segments_of(connection, session_id)

    async def notes(self, session_id: SessionId, note_ids: Iterable[str]) -> dict[str, Note]:
        """Return these notes by id, whatever their status."""
        wanted = select(notes).where(notes.c.session_id == session_id, notes.c.id.in_(sorted(note_ids)))
        async with self._database.reading() as connection:
            return {row.id: rows.note_from_row(row) for row in await connection.execute(wanted)}

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

    async def names(self, session_id: SessionId, *, until: int) -> dict[str, str]:
        """Return the name each person had when they last spoke, up to turn `until`, by person id."""
        async with self._database.reading() as connection:
            spoken = await read_turns(connection, session_id, start=0, end=until + 1)
        return {part.speaker_id: part.speaker for turn in spoken for part in turn.parts}


async def segments_of(connection: AsyncConnection, session_id: SessionId) -> tuple[Segment, ...]:
    """Return the segments of a session, including the closing one, in order."""
    found = await segment_rows(connection, session_id)
    # A long session has a thousand.
    return await in_thread(connection, lambda: tuple(map(rows.segment_from_row, found)))


async def rerender_summary(connection: AsyncConnection, session_id: SessionId, *, now: float) -> None:
    """Render and store the session's summary again, after its segments were pruned or forgotten. `now`: epoch seconds.

    Call it inside a write transaction. It raises the revision, so that an open room takes over the new summary with its
    next landing.
    """
    session = (await connection.execute(select(sessions).where(sessions.c.id == session_id))).one()
    found = await segment_rows(connection, session_id)

    def composed() -> str | None:
        folded = [each for each in map(rows.segment_from_row, found) if not each.closing]
        return summary_of(folded, newest=folded[-1] if folded else None)

    # A long session takes a tenth of a second; in a thread it does not delay the audio of other rooms.
    summary = await in_thread(connection, composed)
    revision = session.revision + 1
    await connection.execute(
        update(sessions).where(sessions.c.id == session_id).values(summary=summary, revision=revision)
    )
    values: dict[str, object] = {
        "session_id": session_id,
        "revision": revision,
        "cursor": session.cursor,
        "landed_at": now,
        "segment_id": None,
        "summary": summary,
    }
    await add_once(connection, landings, values)
