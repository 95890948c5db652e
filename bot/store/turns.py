"""Stores turns, notes, segments and the compaction state. Implements `compaction.ports.TurnStore`.

Each method is one transaction and also indexes the stored item. All methods are idempotent: a caller that does not know
whether a call succeeded may repeat it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from sqlalchemy import Table, func, select, update

from bot.store import rows
from bot.store.forgettings import LearnedForgettings
from bot.store.history import read_memory, read_turns, rerender_summary, session_row
from bot.store.inserts import add_once
from bot.store.search.passages import index_source
from bot.store.tables import notes, segments, sessions, turns
from bot.texts.text import Text
from compaction.errors import StoreError
from compaction.model import CompactionState, Note, NoteId, Segment, Seq, SessionId, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.clock import Clock
    from bot.store.database import Database
    from compaction.ports import Landing, StoredMemory

log = structlog.get_logger()


class SqlTurnStore:
    """`compaction.ports.TurnStore` on an open `Database`. Safe for all tasks of one loop.

    A room has one of its own, from its first `load` to its end: it knows what was forgotten meanwhile.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._forgettings = LearnedForgettings(database.key, clock)
        # The newest revision of a session that the room has read or made. What it makes of an older one may tell of
        # what was forgotten.
        self._known: dict[SessionId, int] = {}

    async def load(self, session_id: SessionId) -> StoredMemory:
        """Return everything a restart needs, read in one transaction. The memory of an unknown session is empty."""
        async with self._database.reading() as connection:
            await self._forgettings.learn(connection)
            found = await read_memory(connection, self._database.sql, session_id)
        self._known[session_id] = found.state.revision
        return found

    async def append_turn(self, session_id: SessionId, turn: Turn) -> Turn:
        """Store one turn, and return it as stored. Storing it again changes nothing, even if parts of it were forgotten
        meanwhile.

        What people said is left out if they were forgotten since, and so is the text of a reply if others have changed
        the session since it was loaded: it may have been made of forgotten words.

        Raises `StoreError` if another turn is stored under its number.
        """
        async with self._database.writing() as connection:
            await self._forgettings.learn(connection)
            await _ensure_session(connection, session_id, started_at=turn.started_at)
            kept = self._forgettings.left_of_turn(session_id, turn)
            if turn.kind is TurnKind.ASSISTANT and await self._is_outdated(connection, session_id):
                kept = turn.without_words()
            if await add_once(connection, turns, rows.turn_values(session_id, kept)):
                await index_source(connection, session_id, kept)
                if kept is not turn:
                    # Replies and prompts that are being made may have it.
                    await rerender_summary(connection, session_id)
                return kept
            stored = await read_turns(connection, session_id, start=turn.seq, end=turn.seq + 1)
            if stored not in ((turn,), (kept,)) and not _is_remainder(kept, stored):
                raise StoreError(
                    Text(
                        "Turn {seq} of session {session_id} is already stored with other content. "
                        "Two processes seem to write the same session. Stop one of them.",
                        seq=turn.seq,
                        session_id=session_id,
                    )
                )
            return stored[0]

    async def _is_outdated(self, connection: AsyncConnection, session_id: SessionId) -> bool:
        """Return whether others have changed a session since it was loaded."""
        stored = int(await connection.scalar(select(sessions.c.revision).where(sessions.c.id == session_id)) or 0)
        return stored > self._known.setdefault(session_id, stored)

    async def turns(self, session_id: SessionId, start: Seq, end: Seq) -> Sequence[Turn]:
        async with self._database.reading() as connection:
            return await read_turns(connection, session_id, start=start, end=end)

    async def add_note(self, session_id: SessionId, note: Note) -> bool:
        """Store one live note, unless its id is stored already. Return False, and leave it out, if whoever showed it
        was forgotten since.
        """
        async with self._database.writing() as connection:
            await self._forgettings.learn(connection)
            await _ensure_session(connection, session_id, started_at=note.at)
            if self._forgettings.has_forgotten_note(session_id, note):
                await rerender_summary(connection, session_id)
                return False
            place = {"position": await _next_position(connection, notes, session_id), "status": "live"}
            if await add_once(connection, notes, rows.note_values(session_id, note) | place):
                await index_source(connection, session_id, note)
            return True

    async def move_notes_to_pending(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """Make live notes pending. Notes that are not live are left unchanged."""
        async with self._database.writing() as connection:
            await _move_notes(connection, session_id, note_ids, before="live", after="pending")

    async def drop_notes(self, session_id: SessionId, note_ids: Sequence[NoteId]) -> None:
        """Let pending notes wait for no fold any more. They stay searchable."""
        async with self._database.writing() as connection:
            await _move_notes(connection, session_id, note_ids, before="pending", after="dropped")

    async def land(self, landing: Landing) -> bool:
        """Apply one landing in one transaction. Returns False, and changes nothing, if it is outdated or a repeat."""
        session_id = landing.session_id
        async with self._database.writing() as connection:
            session = await session_row(connection, session_id)
            expected = (landing.expected_cursor, landing.expected_revision)
            if session is None or session.ended_at is not None or (session.cursor, session.revision) != expected:
                return False
            if not await _add_segment(connection, session_id, landing.segment):
                return False
            await _store_state(connection, session_id, landing.state)
            await _move_notes(connection, session_id, landing.segment.note_ids, before="pending", after="folded")
        self._known[session_id] = landing.state.revision
        return True

    async def close(self, session_id: SessionId, segment: Segment | None, state: CompactionState) -> None:
        """Store the closing segment and the final state, and mark the session ended. An ended session is unchanged.

        Raises `StoreError`, and changes nothing, if the stored cursor or revision differs from that of `state`.
        """
        async with self._database.writing() as connection:
            now = self._clock.now()
            await _ensure_session(connection, session_id, started_at=now)
            session = await session_row(connection, session_id)
            if session is None or session.ended_at is not None:
                return
            if (session.cursor, session.revision) != (state.cursor, state.revision):
                raise StoreError(
                    Text(
                        "Session {session_id} cannot end with version {revision}, because version "
                        "{stored} is stored. Two processes seem to use the same session. Stop one of "
                        "them.",
                        session_id=session_id,
                        revision=state.revision,
                        stored=session.revision,
                    )
                )
            if segment is not None:
                await _add_segment(connection, session_id, segment)
            await _store_state(connection, session_id, state)
            await connection.execute(update(sessions).where(sessions.c.id == session_id).values(ended_at=now))


def _is_remainder(turn: Turn, stored: tuple[Turn, ...]) -> bool:
    """Return whether `stored` is `turn` after parts of it were forgotten."""
    if len(stored) != 1:
        return False
    (left,) = stored
    forgotten = left.tombstone or len(left.parts) < len(turn.parts)
    return forgotten and turn.with_parts(left.parts) == left and {*left.parts} <= {*turn.parts}


async def _ensure_session(connection: AsyncConnection, session_id: SessionId, *, started_at: float) -> None:
    """Create the session's row if `Sessions` has not (in a replay or a test)."""
    await add_once(connection, sessions, {"id": session_id, "started_at": started_at})


async def _move_notes(
    connection: AsyncConnection, session_id: SessionId, note_ids: Sequence[NoteId], *, before: str, after: str
) -> None:
    """Change the status of those notes among `note_ids` whose status is `before`."""
    for note_id in note_ids:
        await connection.execute(
            update(notes)
            .where(notes.c.session_id == session_id, notes.c.id == note_id, notes.c.status == before)
            .values(status=after)
        )


async def _add_segment(connection: AsyncConnection, session_id: SessionId, segment: Segment) -> bool:
    """Store a segment; False when its id or its range is stored already."""
    place: dict[str, object] = {"position": await _next_position(connection, segments, session_id)}
    if not await add_once(connection, segments, rows.segment_values(session_id, segment) | place):
        return False
    await index_source(connection, session_id, segment)
    return True


async def _next_position(connection: AsyncConnection, table: Table, session_id: SessionId) -> int:
    last = await connection.scalar(select(func.max(table.c.position)).where(table.c.session_id == session_id))
    return 0 if last is None else int(last) + 1


async def _store_state(connection: AsyncConnection, session_id: SessionId, state: CompactionState) -> None:
    """Store the state without pending notes: their rows are authoritative, and may have increased meanwhile."""
    await connection.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(cursor=state.cursor, revision=state.revision, summary=state.summary, last_at=state.last_at)
    )
