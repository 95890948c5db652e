"""Writes segments and the compression queue in the JSON format of spec 3. Pure.

Times are ISO 8601 in UTC, with the part of a second, which tells what was made before something was forgotten and what
after it. `end_turn` is the last turn of a segment (inclusive).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from compaction.memory.segment_record import SegmentRecord
    from compaction.memory.tiers import TieredSegment
    from compaction.model import Segment, SegmentId


def segment_json(segment: Segment, record: SegmentRecord) -> dict[str, object]:
    """Return the content of a segment's file: its record, and the paragraph that the model wrote with it, if any."""
    return record_json(record) | ({"paragraph": segment.paragraph} if segment.paragraph else {})


def record_json(record: SegmentRecord) -> dict[str, object]:
    return {
        "segment_id": record.segment_id,
        "topic": record.topic,
        "session_id": record.session_id,
        "start_turn": record.start_turn,
        "end_turn": record.end_turn,
        "original_tokens": record.original_tokens,
        "compressed_tokens": record.compressed_tokens,
        "compression_ratio": record.compression_ratio,
        "compressed_at": iso(record.compressed_at),
        "last_accessed": iso(record.last_accessed),
        "access_count": record.access_count,
        "relevance_score": record.relevance_score,
        "compressed_content": record.compressed_content,
        "key_decisions": list(record.key_decisions),
        "key_files": list(record.key_files),
        "metadata": {
            "contains_code": record.metadata.contains_code,
            "contains_errors": record.metadata.contains_errors,
            "task_completed": record.metadata.task_completed,
        },
    }


def queue_json(
    kept: Sequence[TieredSegment],
    *,
    topics: Mapping[SegmentId, str],
    total_turns: int,
    last_check_turn: int,
    location: Callable[[TieredSegment], str],
) -> dict[str, object]:
    """Return the content of a session's queue file: its segments that wait for compression, and the compressed ones.

    `location` returns where a compressed segment is stored. `last_check_turn`: how many turns the session had at the
    last check.
    """
    return {
        "pending": [
            {
                "segment_id": each.segment.id,
                "topic": topics[each.segment.id],
                "start_turn": each.segment.start,
                "end_turn": each.segment.end - 1,
                "message_count": each.message_count,
                "turns_since_mention": each.turns_since_mention(total_turns),
                "queued_at_turn": each.queued_at_turn,
                "timestamp": iso(each.queued_at or 0.0),
            }
            for each in kept
            if each.record is None and each.queued_at_turn is not None
        ],
        "compressed": [
            {
                "segment_id": each.segment.id,
                "topic": each.record.topic,
                "compressed_at_turn": each.compressed_at_turn or 0,
                "original_tokens": each.record.original_tokens,
                "compressed_tokens": each.record.compressed_tokens,
                "compression_ratio": each.record.compression_ratio,
                "storage_location": location(each),
                "timestamp": iso(each.record.compressed_at),
            }
            for each in kept
            if each.record is not None
        ],
        "last_check_turn": last_check_turn,
    }


def iso(at: float) -> str:
    """Return a time as it is written in the files. `at`: UTC epoch seconds."""
    return datetime.fromtimestamp(at, UTC).isoformat()
