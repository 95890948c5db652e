"""Imports segments and compression queues from files.

A known segment gets its record back. A segment of an unknown session creates that session, ended and without turns, so
that search finds its content. A session that has turns of its own gets no new segments. Raises `StoreError`, and
`SegmentImportError` for data that does not fit.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from sqlalchemy import func, select, update

from bot.errors import BotError
from bot.store import rows
from bot.store.claims import writing_session
from bot.store.forgotten_sessions import is_forgotten
from bot.store.inserts import add_once
from bot.store.search.indexing import index_source
from bot.store.tables import segment_tiers, segments, sessions, turns
from bot.store.tier_rows import AccessCount, StoredTier
from bot.store.tiers import mark_archived, set_last_check, store_tier
from compaction.memory.tiers import TieredSegment
from compaction.model import IMPORTED, Segment, SegmentId, Seq, SessionId

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.memory.export_format import CompressionQueue
    from compaction.memory.segment_record import SegmentRecord


class SegmentImportError(BotError):
    """The data of a file does not fit what is stored. The message says why."""


class ImportResult(Enum):
    """Whether an imported segment was new."""

    NEW = "new"
    KNOWN = "known"


class SegmentImporter:
    """Imports records and queues. Each is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def import_record(
        self,
        record: SegmentRecord,
        *,
        paragraph: str = "",
        archived_at: float | None = None,
        guild_id: int | None = None,
    ) -> ImportResult:
        """Import one segment. `archived_at`: archive it (UTC epoch seconds).

        `paragraph`, `guild_id`: the paragraph of a new segment, and the guild of a new session.
        """
        async with writing_session(self._database, record.session_id) as connection:
            if await is_forgotten(connection, self._database.key, record):
                raise SegmentImportError(
                    f"Segment {record.segment_id} tells of something that was forgotten since, so it is left out. "
                    "Export the session again."
                )
            row = (
                await connection.execute(
                    select(segments).where(
                        segments.c.session_id == record.session_id, segments.c.id == record.segment_id
                    )
                )
            ).one_or_none()
            if row is None:
                segment, result = await _new_segment(connection, record, paragraph, guild_id), ImportResult.NEW
            else:
                segment, result = rows.segment_from_row(row), ImportResult.KNOWN
            spoken = max(0, record.end_turn - record.start_turn + 1)
            kept = TieredSegment(
                segment,
                spoken,
                max(segment.start, segment.end - 1),
                record=record,
                compressed_at_turn=segment.end,
                archived_at=archived_at,
                pruned_at=archived_at if archived_at is not None and not _details(record) else None,
            )
            accesses = AccessCount(record.access_count, record.last_accessed, record.relevance_score)
            await store_tier(connection, record.session_id, StoredTier(kept, accesses))
            if archived_at is not None:
                await mark_archived(connection, record.session_id, record.segment_id)
            return result

    async def import_queue(self, session_id: SessionId, queue: CompressionQueue) -> tuple[int, tuple[SegmentId, ...]]:
        """Import a session's queue and its last check.

        Returns the number of imported entries, and the ids of segments that are not stored.
        """
        async with writing_session(self._database, session_id) as connection:
            if await connection.scalar(select(sessions.c.id).where(sessions.c.id == session_id)) is None:
                raise SegmentImportError(f"There is no session {session_id}. Import its segments first.")
            found = await connection.execute(select(segments).where(segments.c.session_id == session_id))
            known = {row.id: rows.segment_from_row(row) for row in found}
            total = await connection.scalar(select(func.max(turns.c.seq)).where(turns.c.session_id == session_id))
            missing = [each.segment_id for each in queue.pending if each.segment_id not in known]
            for entry in queue.pending:
                if entry.segment_id in known:
                    last = max(
                        0, (queue.last_check_turn if total is None else total + 1) - 1 - entry.turns_since_mention
                    )
                    await _queue_up(connection, known[entry.segment_id], entry.message_count, last)
                    await _set(
                        connection,
                        session_id,
                        entry.segment_id,
                        {"queued_at_turn": entry.queued_at_turn, "queued_at": entry.timestamp},
                    )
            for done in queue.compressed:
                await _set(connection, session_id, done.segment_id, {"compressed_at_turn": done.compressed_at_turn})
            await set_last_check(connection, session_id, queue.last_check_turn)
            return len(queue.pending) - len(missing), tuple(missing)


async def _new_segment(
    connection: AsyncConnection, record: SegmentRecord, paragraph: str, guild_id: int | None
) -> Segment:
    """Store an unknown segment, with its content as gist, and its session if that is unknown too."""
    session_id = record.session_id
    made: dict[str, object] = {
        "id": session_id,
        "guild_id": guild_id,
        "started_at": record.compressed_at,
        "ended_at": record.compressed_at,
    }
    if not await add_once(connection, sessions, made) and await connection.scalar(
        select(func.count()).select_from(turns).where(turns.c.session_id == session_id)
    ):
        raise SegmentImportError(
            f"Session {session_id} has turns of its own and no segment {record.segment_id}: a segment of another "
            "session cannot be added to it."
        )
    segment = Segment(
        id=record.segment_id,
        session_id=session_id,
        start=Seq(record.start_turn),
        end=Seq(record.end_turn + 1),
        started_at=record.compressed_at,
        ended_at=record.compressed_at,
        gist=record.compressed_content,
        facts=(),
        note_ids=(),
        prompt_version=IMPORTED,
        created_at=record.compressed_at,
        original_tokens=record.original_tokens,
        compressed_tokens=record.compressed_tokens,
        # An imported segment has no facts, only its gist.
        pruned=True,
        paragraph=paragraph,
    )
    last = await connection.scalar(select(func.max(segments.c.position)).where(segments.c.session_id == session_id))
    place: dict[str, object] = {"position": 0 if last is None else last + 1}
    if not await add_once(connection, segments, rows.segment_values(session_id, segment) | place):
        raise SegmentImportError(
            f"Session {session_id} has another segment of turns {record.start_turn} to {record.end_turn}; "
            f"{record.segment_id} cannot be added beside it."
        )
    await index_source(connection, session_id, segment)
    return segment


def _details(record: SegmentRecord) -> bool:
    return bool(record.key_decisions or record.key_files)


async def _queue_up(connection: AsyncConnection, segment: Segment, message_count: int, last_mention: int) -> None:
    key: dict[str, object] = {"session_id": segment.session_id, "segment_id": segment.id}
    await add_once(connection, segment_tiers, key | {"message_count": message_count, "last_mention": last_mention})


async def _set(connection: AsyncConnection, session_id: SessionId, name: SegmentId, values: dict[str, object]) -> None:
    same = (segment_tiers.c.session_id == session_id) & (segment_tiers.c.segment_id == name)
    await connection.execute(update(segment_tiers).where(same).values(values))
