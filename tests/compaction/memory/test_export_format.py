"""Segments and queues are exported as the JSON of spec 3 and read back. Every mistake raises a clear error."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.memory.export_format import (
    ExportFormatError,
    build_queue,
    is_queue,
    queue_json,
    read_paragraph,
    read_queue,
    read_record,
    record_json,
    segment_json,
)
from compaction.memory.segment_record import RecordMetadata, SegmentRecord, make_record
from compaction.memory.tiers import TieredSegment
from compaction.model import SegmentId, SessionId
from tests.compaction.segments import batch as segment
from tests.compaction.segments import fact
from tests.compaction.turn_store_contract import T0 as NOW

EXAMPLE = {
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
QUEUE: dict[str, Any] = {
    "pending": [
        {
            "segment_id": "seg_42_0",
            "topic": "Implement OAuth2 authentication",
            "start_turn": 15,
            "end_turn": 35,
            "message_count": 12,
            "turns_since_mention": 25,
            "queued_at_turn": 60,
            "timestamp": "2026-02-16T15:30:00",
        }
    ],
    "compressed": [
        {
            "segment_id": "seg_42_0",
            "topic": "Implement OAuth2 authentication",
            "compressed_at_turn": 65,
            "original_tokens": 2400,
            "compressed_tokens": 380,
            "compression_ratio": 6.3,
            "storage_location": "data/knowledge-db/compressed_context/seg_42_0.json",
            "timestamp": "2026-02-16T15:32:00",
        }
    ],
    "last_check_turn": 60,
}


def test_the_specifications_own_examples_are_read() -> None:
    """The specification's example segment and queue are read, and written again with every field in the same order."""
    record = read_record(EXAMPLE)
    assert record.metadata == RecordMetadata(contains_code=True, contains_errors=False, task_completed=True)
    written = record_json(record)
    assert list(written) == list(EXAMPLE)
    assert written | {"compressed_at": 0, "last_accessed": 0} == EXAMPLE | {"compressed_at": 0, "last_accessed": 0}
    assert written["compressed_at"] == "2026-02-16T15:32:00+00:00"
    queue = queue_json(read_queue(QUEUE))
    assert list(queue) == list(QUEUE)
    for key in ("pending", "compressed"):
        told, expected = queue[key], QUEUE[key]
        assert isinstance(told, list)
        assert isinstance(expected, list)
        assert [list(each) for each in told] == [list(each) for each in expected]
    assert is_queue(QUEUE)
    assert not is_queue(EXAMPLE)


def test_a_file_of_a_segment_carries_its_paragraph() -> None:
    """The paragraph comes back; a file of an earlier version has none, and a damaged one is refused."""
    made = segment(0, fact(1, "We leave at nine."))
    assert read_paragraph(EXAMPLE) == ""
    assert segment_json(made, make_record(made, at=NOW)) == record_json(make_record(made, at=NOW))
    written = segment_json(replace(made, paragraph="They leave at nine."), make_record(made, at=NOW))
    assert read_paragraph(json.loads(json.dumps(written))) == "They leave at nine."
    assert read_record(written) == make_record(made, at=NOW)
    with pytest.raises(ExportFormatError, match='"paragraph" in a segment must be some text'):
        read_paragraph(EXAMPLE | {"paragraph": 3})


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
    queue = build_queue(
        kept,
        topics={waiting.id: "Leaving at nine"},
        total_turns=75,
        last_check_turn=70,
        location=lambda each: f"compressed_context/{each.segment.id}.json",
    )
    (pending,), (compressed,) = queue.pending, queue.compressed
    assert (pending.segment_id, pending.topic, pending.end_turn) == (waiting.id, "Leaving at nine", 9)
    assert (pending.turns_since_mention, pending.queued_at_turn, pending.timestamp) == (62, 60, NOW)
    assert (compressed.segment_id, compressed.compressed_at_turn) == (done.id, 70)
    assert compressed.storage_location == f"compressed_context/{done.id}.json"
    assert queue.last_check_turn == 70


RECORDS = st.builds(
    SegmentRecord,
    segment_id=st.text(min_size=1, max_size=200).filter(str.strip).map(SegmentId),
    topic=st.text(min_size=1).filter(str.strip),
    session_id=st.text(min_size=1, max_size=200).filter(str.strip).map(SessionId),
    start_turn=st.integers(0, 10_000),
    end_turn=st.integers(10_000, 20_000),
    original_tokens=st.integers(0, 10_000),
    compressed_tokens=st.integers(0, 10_000),
    compression_ratio=st.floats(0, 1000),
    compressed_at=st.integers(0, 4_000_000_000).map(float),
    last_accessed=st.integers(0, 4_000_000_000).map(float),
    access_count=st.integers(0, 1000),
    relevance_score=st.floats(0, 1),
    compressed_content=st.text(min_size=1).filter(str.strip),
    key_decisions=st.lists(st.text(), max_size=3).map(tuple),
    key_files=st.lists(st.text(), max_size=3).map(tuple),
    metadata=st.builds(
        RecordMetadata, contains_code=st.booleans(), contains_errors=st.booleans(), task_completed=st.booleans()
    ),
)


@given(RECORDS)
def test_a_record_comes_back_from_its_file_unchanged(record: SegmentRecord) -> None:
    """Any record can be written as JSON text and read back unchanged."""
    assert read_record(json.loads(json.dumps(record_json(record)))) == record


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"segment_id": ""}, '"segment_id" in a segment must be some text'),
        ({"start_turn": "15"}, '"start_turn" in a segment must be a whole number'),
        ({"start_turn": 40}, "does not end before it begins"),
        ({"relevance_score": 2}, "between 0 and 1"),
        ({"compressed_at": "yesterday"}, 'for example "compressed_at": "2026-02-16T15:32:00"'),
        ({"key_files": "a.py"}, '"key_files" in a segment must be a list'),
        ({"key_decisions": [1]}, "must be a list of texts"),
        ({"metadata": None}, "must be a JSON object"),
        ({"metadata": {"contains_code": 1}}, '"contains_code" in "metadata" must be true or false'),
        ({"compression_ratio": None}, "must be a number"),
        ({"access_count": True}, "must be a whole number"),
        ({"access_count": 2**63 - 1}, "must be a whole number from 0 to"),
        ({"original_tokens": 10**15}, "must be a whole number from 0 to"),
        ({"end_turn": 2**63 - 1}, "must be a whole number from -1 to 5000000"),
        ({"start_turn": 10**9, "end_turn": 10**9}, "must be a whole number from 0 to 5000000"),
        ({"compressed_at": "9999-12-31T23:59:59"}, "must be a time from 1970 to 2100-01-01T00:00:00+00:00"),
        ({"compressed_at": "9999-12-31T23:59:59-14:00"}, "must be a time from 1970 to"),
        ({"last_accessed": "0001-01-01T00:00:00"}, '"last_accessed" in a segment must be a time from 1970 to'),
        ({"last_accessed": "0001-01-01T00:00:00+14:00"}, "must be a time from 1970 to"),
        ({"compressed_at": "1969-12-31T23:59:59"}, "must be a time from 1970 to"),
        ({"segment_id": "x" * 201}, '"segment_id" in a segment is longer than 200 characters'),
        ({"session_id": "a\ud800"}, "holds half a character"),
        ({"compressed_content": "x" * 100_001}, "longer than 100000 characters"),
        ({"key_files": ["\udfff"]}, "holds half a character"),
        ({"key_decisions": ["x"] * 10_001}, "has more than 10000 entries"),
        ({"compression_ratio": float("nan")}, "must be a number"),
    ],
)
def test_a_mistake_is_a_sentence(change: dict[str, object], told: str) -> None:
    """The error for a mistake names the field and says what should stand there."""
    with pytest.raises(ExportFormatError) as caught:
        read_record(EXAMPLE | change)
    assert told in str(caught.value)


@pytest.mark.parametrize("key", ["start_turn", "end_turn", "message_count", "turns_since_mention", "queued_at_turn"])
def test_a_queue_is_checked_too(key: str) -> None:
    """Turns and times of a queue have the same bounds as those of a segment."""
    for change in ({key: 2**62}, {"timestamp": "9999-01-01T00:00:00"}, {"segment_id": "x" * 201}):
        with pytest.raises(ExportFormatError):
            read_queue(QUEUE | {"pending": [QUEUE["pending"][0] | change]})
    with pytest.raises(ExportFormatError, match="from 0 to 5000000"):
        read_queue(QUEUE | {"last_check_turn": 2**62})


def test_the_caller_says_how_late_it_is() -> None:
    """A time after `latest` is refused."""
    with pytest.raises(ExportFormatError, match="2026-02-16T00:00:00"):
        read_record(EXAMPLE, latest=datetime(2026, 2, 16, tzinfo=UTC).timestamp())
    with pytest.raises(ExportFormatError, match="2026-02-16T00:00:00"):
        read_queue(QUEUE, latest=datetime(2026, 2, 16, tzinfo=UTC).timestamp())


def test_what_is_missing_is_named() -> None:
    """The error for a missing field names the field, in segments, queues and their entries."""
    with pytest.raises(ExportFormatError, match='"topic" is missing in a segment'):
        read_record({key: value for key, value in EXAMPLE.items() if key != "topic"})
    with pytest.raises(ExportFormatError, match='"timestamp" is missing in an entry of "pending"'):
        read_queue(_broken())
    with pytest.raises(ExportFormatError, match="A queue must be a JSON object"):
        read_queue([])


def _broken() -> dict[str, object]:
    written = json.loads(json.dumps(QUEUE))
    del written["pending"][0]["timestamp"]
    assert isinstance(written, dict)
    return written


def test_a_segment_of_notes_alone_covers_no_turn() -> None:
    """A segment made from notes alone covers no turn, so the end turn in its file is one before the start turn."""
    notes_only = replace(segment(0, fact(0, "A map.")), end=segment(0).start)
    record = make_record(notes_only, at=NOW)
    assert (record.start_turn, record.end_turn) == (0, -1)
    assert read_record(record_json(record)).end_turn == -1
