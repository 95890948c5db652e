"""Segments and queues are exported as the JSON of spec 3."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from compaction.memory.export_format import (
    iso,
    queue_json,
    record_json,
    segment_json,
)
from compaction.memory.segment_record import RecordMetadata, SegmentRecord, make_record
from compaction.memory.tiers import TieredSegment
from tests.compaction.segments import batch as segment
from tests.compaction.segments import fact
from tests.compaction.turn_store_contract import T0 as NOW

EXAMPLE: dict[str, Any] = {
    "segment_id": "seg_42_0",
    "topic": "Implement OAuth2 authentication",
    "session_id": "abc-123-def-456",
    "start_turn": 15,
    "end_turn": 35,
    "original_tokens": 2400,
    "compressed_tokens": 380,
    "compression_ratio": 6.3,
    "compressed_at": "2026-02-16T15:32:00",
    "last_accessed": "2026-02-16T15:32:00",
    "access_count": 0,
    "relevance_score": 0.85,
    "compressed_content": "Implemented OAuth2 authentication system with...",
    "key_decisions": ["Used JWT tokens with 1-hour expiry"],
    "key_files": ["src/auth/oauth2.ts"],
    "metadata": {"contains_code": True, "contains_errors": False, "task_completed": True},
}


def record() -> SegmentRecord:
    """Return the record of the specification's example segment."""
    at = datetime(2026, 2, 16, 15, 32, tzinfo=UTC).timestamp()
    fields = EXAMPLE | {"compressed_at": at, "last_accessed": at}
    metadata = RecordMetadata(contains_code=True, contains_errors=False, task_completed=True)
    lists = {"key_decisions": tuple(EXAMPLE["key_decisions"]), "key_files": tuple(EXAMPLE["key_files"])}
    return SegmentRecord(**fields | lists | {"metadata": metadata})


def test_a_record_is_written_as_the_specification_shows_it() -> None:
    """Every field of the example is there, in the same order; times say that they are UTC."""
    written = record_json(record())
    assert list(written) == list(EXAMPLE)
    at = "2026-02-16T15:32:00+00:00"
    assert written == EXAMPLE | {"compressed_at": at, "last_accessed": at}


def test_a_file_of_a_segment_carries_its_paragraph() -> None:
    """A segment without one has the record alone."""
    made = segment(0, fact(1, "We leave at nine."))
    alone = make_record(made, at=NOW)
    assert segment_json(made, alone) == record_json(alone)
    written = segment_json(replace(made, paragraph="They leave at nine."), alone)
    assert written == record_json(alone) | {"paragraph": "They leave at nine."}


def test_a_queue_tells_what_waits_and_what_is_done() -> None:
    """The exported queue has the waiting and the compressed segments, and no other ones."""
    waiting, done, warm = (segment(number, fact(10 * number, "We leave at nine.")) for number in range(3))
    kept = [
        TieredSegment(waiting, 10, 12, queued_at_turn=60, queued_at=NOW),
        TieredSegment(
            done, 10, 19, queued_at_turn=60, queued_at=NOW, record=make_record(done, at=NOW), compressed_at_turn=70
        ),
        TieredSegment(warm, 10, 29),
    ]
    queue: dict[str, Any] = queue_json(
        kept,
        topics={waiting.id: "Leaving at nine"},
        total_turns=75,
        last_check_turn=70,
        location=lambda each: f"compressed_context/{each.segment.id}.json",
    )
    (pending,), (compressed,) = queue["pending"], queue["compressed"]
    assert pending == {
        "segment_id": waiting.id,
        "topic": "Leaving at nine",
        "start_turn": 0,
        "end_turn": 9,
        "message_count": 10,
        "turns_since_mention": 62,
        "queued_at_turn": 60,
        "timestamp": iso(NOW),
    }
    assert (compressed["segment_id"], compressed["compressed_at_turn"]) == (done.id, 70)
    assert compressed["storage_location"] == f"compressed_context/{done.id}.json"
    assert (list(queue), queue["last_check_turn"]) == (["pending", "compressed", "last_check_turn"], 70)


def test_a_segment_of_notes_alone_covers_no_turn() -> None:
    """The end turn in its file is one before the start turn."""
    notes_only = replace(segment(0, fact(0, "A map.")), end=segment(0).start)
    written = record_json(make_record(notes_only, at=NOW))
    assert (written["start_turn"], written["end_turn"]) == (0, -1)
