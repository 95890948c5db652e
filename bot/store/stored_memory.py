"""Reads all that a session goes on with: its window, segments, notes, speakers and state.

A row that is damaged, or that a newer Roomtone wrote, keeps no room from beginning. What can be read of it is used: a
turn without its words, a segment with blanks in place of its facts; a note is left
out. The row itself stays as it is. So a newer Roomtone or somebody's repair finds it, and it goes when its person is
forgotten or when it is too old.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError

from bot.store import rows
from bot.store.rows import UNREADABLE, UnreadableRowError
from bot.store.salvage import salvage_segment, salvage_turn
from bot.store.speakers import quotable_speakers
from bot.store.tables import notes, segments, sessions, turns
from bot.store.thread_work import in_thread
from compaction.model import CompactionState, Seq
from compaction.ports import StoredMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.dialects.port import PlainSql
    from bot.store.salvage import Salvaged
    from compaction.model import Note, SessionId, Turn

T = TypeVar("T")

# A table and the key of one of its rows, within a session.
RowKey: TypeAlias = tuple[str, str]


async def read_memory(
    connection: AsyncConnection, sql: PlainSql, session_id: SessionId
) -> tuple[StoredMemory, frozenset[RowKey]]:
    """Return everything that a restart needs, and which rows could not be read whole. The memory of an unknown session
    is empty.
    """
    session = await session_row(connection, session_id)
    cursor = 0 if session is None else session.cursor
    last = await connection.scalar(select(func.max(turns.c.seq)).where(turns.c.session_id == session_id))
    window = await _turn_rows(connection, session_id, start=cursor, end=None)
    of_segments = select(segments).where(segments.c.session_id == session_id)
    kept = (await connection.execute(of_segments.order_by(segments.c.start_seq, segments.c.position))).all()
    of_notes = select(notes).where(notes.c.session_id == session_id, notes.c.status.in_(("live", "pending")))
    seen = (await connection.execute(of_notes.order_by(notes.c.position))).all()
    speakers = await _speakers(connection, sql, session_id)
    quotable = await quotable_speakers(connection, sql, session_id)

    def make() -> tuple[StoredMemory, frozenset[RowKey]]:
        unreadable: set[RowKey] = set()
        live, pending = _notes(seen, "live", unreadable), _notes(seen, "pending", unreadable)
        memory = StoredMemory(
            total_turns=0 if last is None else last + 1,
            state=_state(session, pending),
            window=_salvaged_turns(window, unreadable),
            segments=_salvaged("segments", kept, salvage_segment, unreadable),
            live_notes=live,
            ended=session is not None and session.ended_at is not None,
            speakers=speakers,
            quotable=quotable,
        )
        return memory, frozenset(unreadable)

    # In a thread: a long session has thousands of rows.
    return await in_thread(connection, make)


async def segment_rows(connection: AsyncConnection, session_id: SessionId) -> Sequence[Row[Any]]:
    """Return the stored segments of a session, also the closing one, in order."""
    wanted = select(segments).where(segments.c.session_id == session_id)
    return (await connection.execute(wanted.order_by(segments.c.start_seq, segments.c.position))).all()


async def read_turns(
    connection: AsyncConnection, session_id: SessionId, *, start: int, end: int | None
) -> tuple[Turn, ...]:
    """Return the stored turns with `start <= seq < end`, in order. One that cannot be read has no words."""
    found = await _turn_rows(connection, session_id, start=start, end=end)
    # Commands read whole sessions: decoding ten thousand turns takes a fifth of a second.
    return await in_thread(connection, lambda: _salvaged_turns(found, set()))


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


def _salvaged_turns(found: Iterable[Row[Any]], unreadable: set[RowKey]) -> tuple[Turn, ...]:
    read: list[Turn] = []
    for row in found:
        salvaged = salvage_turn(row)
        if salvaged.lost is None:
            read.append(salvaged.thing)
        else:
            unreadable.add(("turns", str(row.seq)))
            read.append(replace(salvaged.thing, tombstone=True))
    return tuple(read)


def _salvaged(
    table: str, found: Iterable[Row[Any]], salvage: Callable[[Row[Any]], Salvaged[T]], unreadable: set[RowKey]
) -> tuple[T, ...]:
    read: list[T] = []
    for row in found:
        salvaged = salvage(row)
        if salvaged.lost is not None:
            unreadable.add((table, row.id))
        read.append(salvaged.thing)
    return tuple(read)


def _notes(found: Iterable[Row[Any]], status: str, unreadable: set[RowKey]) -> tuple[Note, ...]:
    read: list[Note] = []
    for row in found:
        if row.status != status:
            continue
        try:
            read.append(rows.note_from_row(row))
        except UnreadableRowError:
            unreadable.add(("notes", row.id))
    return tuple(read)


async def _speakers(connection: AsyncConnection, sql: PlainSql, session_id: SessionId) -> tuple[tuple[str, str], ...]:
    """Return id and name of each speaker, as they first appeared, and then of whose screens there are notes."""
    of_session = select(notes.c.person_id, notes.c.who).where(notes.c.session_id == session_id)
    shown = await connection.execute(of_session.where(notes.c.person_id.is_not(None)).order_by(notes.c.position))
    spoke = await _turn_speakers(connection, sql, session_id)
    return tuple(dict.fromkeys((*spoke, *((row.person_id, row.who) for row in shown))))


async def _turn_speakers(
    connection: AsyncConnection, sql: PlainSql, session_id: SessionId
) -> tuple[tuple[str, str], ...]:
    """Return id and name of each speaker, as they first appeared."""
    try:
        # PostgreSQL goes on after an error only if it is in a transaction of its own.
        async with connection.begin_nested():
            found = (await connection.execute(text(sql.speakers), {"session": session_id})).all()
        # As JSON, because a name may have characters that no encoding has.
        return tuple((_string(speaker_id), _string(name)) for speaker_id, name in found)
    except (DBAPIError, *UNREADABLE):
        # A turn cannot be read. The others are read here, which takes longer.
        spoken = await read_turns(connection, session_id, start=0, end=None)
    return tuple(dict.fromkeys((part.speaker_id, part.speaker) for turn in spoken for part in turn.parts))


def _string(stored: str) -> str:
    """Return a string from its JSON. Raises one of `UNREADABLE`."""
    value = json.loads(stored)
    if not isinstance(value, str):
        raise TypeError
    return value


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
