"""Converts a segment's tier state, with its record and access count, to the `segment_tiers` columns and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, update

from bot.store.rows import read_from, texts_of
from bot.store.tables import segment_tiers
from compaction.memory.segment_record import RecordMetadata, SegmentRecord, compression_ratio
from compaction.memory.tiers import TieredSegment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import Segment, SegmentId, SessionId


_RECORD_COLUMNS = (
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


@dataclass(frozen=True, slots=True)
class AccessCount:
    """How often a segment was retrieved, when last (UTC epoch seconds), and its resulting relevance."""

    count: int
    last_at: float | None
    relevance: float | None


@dataclass(frozen=True, slots=True)
class StoredTier:
    """A stored segment's tier state, with the fields that `TieredSegment` lacks. `known`: it has a row already."""

    kept: TieredSegment
    accesses: AccessCount
    known: bool = False


def record_values(record: SegmentRecord) -> dict[str, object]:
    return {
        "compressed_at": record.compressed_at,
        "topic": record.topic,
        "compressed_content": record.compressed_content,
        "original_tokens": record.original_tokens,
        "compressed_tokens": record.compressed_tokens,
        "key_decisions": json.dumps(record.key_decisions),
        "key_files": json.dumps(record.key_files),
        "contains_code": record.metadata.contains_code,
        "contains_errors": record.metadata.contains_errors,
        "task_completed": record.metadata.task_completed,
        "relevance_score": func.coalesce(segment_tiers.c.relevance_score, record.relevance_score),
    }


def with_accesses(tier: StoredTier, record: SegmentRecord) -> SegmentRecord:
    """Return `record` with the segment's access count."""
    accesses = tier.accesses
    return replace(
        record,
        access_count=accesses.count,
        last_accessed=record.last_accessed if accesses.last_at is None else accesses.last_at,
        relevance_score=record.relevance_score if accesses.relevance is None else accesses.relevance,
    )


def tier_from_row(segment: Segment, row: Row[Any] | None, counts: Mapping[SegmentId, int]) -> StoredTier:
    """Return a segment's tier state from its row. Without a row it is new; `counts` has its number of messages.

    Raises `UnreadableRowError`.
    """
    if row is None:
        fresh = TieredSegment(segment, counts.get(segment.id, 0), max(segment.start, segment.end - 1))
        return StoredTier(fresh, AccessCount(0, None, None))
    kept = TieredSegment(
        segment=segment,
        message_count=row.message_count,
        last_mention=row.last_mention,
        queued_at_turn=row.queued_at_turn,
        queued_at=row.queued_at,
        record=_record(segment, row),
        compressed_at_turn=row.compressed_at_turn,
        archived_at=row.archived_at,
        pruned_at=row.pruned_at,
    )
    return StoredTier(kept, AccessCount(row.access_count, row.last_accessed, row.relevance_score), known=True)


def _record(segment: Segment, row: Row[Any]) -> SegmentRecord | None:
    if row.compressed_at is None:
        return None
    return SegmentRecord(
        segment_id=segment.id,
        topic=row.topic,
        session_id=segment.session_id,
        start_turn=segment.start,
        end_turn=segment.end - 1,
        original_tokens=row.original_tokens,
        compressed_tokens=row.compressed_tokens,
        compression_ratio=compression_ratio(row.original_tokens, row.compressed_tokens),
        compressed_at=row.compressed_at,
        last_accessed=row.compressed_at if row.last_accessed is None else row.last_accessed,
        access_count=row.access_count,
        relevance_score=row.relevance_score,
        compressed_content=row.compressed_content,
        key_decisions=_key_decisions(row),
        key_files=_key_files(row),
        metadata=RecordMetadata(row.contains_code, row.contains_errors, row.task_completed),
    )


@read_from("segment_tiers", key="segment_id")
def _key_decisions(row: Row[Any]) -> tuple[str, ...]:
    return texts_of(row.key_decisions)


@read_from("segment_tiers", key="segment_id")
def _key_files(row: Row[Any]) -> tuple[str, ...]:
    return texts_of(row.key_files)


async def drop_record(connection: AsyncConnection, session_id: SessionId, segment_id: SegmentId) -> None:
    """Clear a segment's record, inside a write transaction. The access count is kept."""
    same = (segment_tiers.c.session_id == session_id) & (segment_tiers.c.segment_id == segment_id)
    await connection.execute(update(segment_tiers).where(same).values(dict.fromkeys(_RECORD_COLUMNS)))
