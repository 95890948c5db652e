"""The record that a segment was compressed to, dropped when the segment is made again: it waits for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import update

from bot.store.kept import segment_tiers

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import SegmentId, SessionId

_OF_THE_RECORD = (
    "queued_at_turn",
    "queued_at",
    "compressed_at_turn",
    "compressed_at",
    "topic",
    "compressed_content",
    "original_tokens",
    "compressed_tokens",
    "key_decisions",
    "key_files",
    "contains_code",
    "contains_errors",
    "task_completed",
)


async def drop_record(connection: AsyncConnection, session_id: SessionId, segment_id: SegmentId) -> None:
    """Forget what a segment was compressed to, inside a write transaction. How often it was retrieved stays."""
    same = (segment_tiers.c.session_id == session_id) & (segment_tiers.c.segment_id == segment_id)
    await connection.execute(update(segment_tiers).where(same).values(dict.fromkeys(_OF_THE_RECORD)))
