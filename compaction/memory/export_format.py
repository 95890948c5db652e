"""Writes and reads segments and the compression queue in the JSON format of spec 3. Pure.

Times are ISO 8601 in UTC, to the second. `end_turn` is the last turn of a segment (inclusive).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from compaction.memory.segment_record import RecordMetadata, SegmentRecord
from compaction.model import SegmentId, SessionId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from compaction.memory.tiers import TieredSegment
    from compaction.model import Segment

_MISSING = object()


class ExportFormatError(ValueError):
    """A file does not match the export format. The message says what is wrong and in which field."""


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """A queue file entry for a segment that waits for compression. `timestamp`: UTC epoch seconds."""

    segment_id: SegmentId
    topic: str
    start_turn: int
    end_turn: int
    message_count: int
    turns_since_mention: int
    queued_at_turn: int
    timestamp: float


@dataclass(frozen=True, slots=True)
class CompressedEntry:
    """A queue file entry for a compressed segment. `timestamp`: UTC epoch seconds."""

    segment_id: SegmentId
    topic: str
    compressed_at_turn: int
    original_tokens: int
    compressed_tokens: int
    compression_ratio: float
    storage_location: str
    timestamp: float


@dataclass(frozen=True, slots=True)
class CompressionQueue:
    """The queue file of one session. `last_check_turn`: how many turns the session had at the last check."""

    pending: tuple[PendingEntry, ...]
    compressed: tuple[CompressedEntry, ...]
    last_check_turn: int


def build_queue(
    kept: Iterable[TieredSegment],
    *,
    topics: Mapping[SegmentId, str],
    total_turns: int,
    last_check_turn: int,
    location: Callable[[TieredSegment], str],
) -> CompressionQueue:
    """Return the queue of a session's segments. `location` returns where a compressed segment is stored."""
    pending: list[PendingEntry] = []
    compressed: list[CompressedEntry] = []
    for each in kept:
        segment = each.segment
        if each.record is not None:
            compressed.append(
                CompressedEntry(
                    segment_id=segment.id,
                    topic=each.record.topic,
                    compressed_at_turn=each.compressed_at_turn or 0,
                    original_tokens=each.record.original_tokens,
                    compressed_tokens=each.record.compressed_tokens,
                    compression_ratio=each.record.compression_ratio,
                    storage_location=location(each),
                    timestamp=each.record.compressed_at,
                )
            )
        elif each.queued_at_turn is not None:
            pending.append(
                PendingEntry(
                    segment_id=segment.id,
                    topic=topics[segment.id],
                    start_turn=segment.start,
                    end_turn=segment.end - 1,
                    message_count=each.message_count,
                    turns_since_mention=each.turns_since_mention(total_turns),
                    queued_at_turn=each.queued_at_turn,
                    timestamp=each.queued_at or 0.0,
                )
            )
    return CompressionQueue(tuple(pending), tuple(compressed), last_check_turn)


def segment_json(segment: Segment, record: SegmentRecord) -> dict[str, object]:
    """Return the content of a segment's file: its record, and the paragraph that the model wrote with it, if any."""
    return record_json(record) | ({"paragraph": segment.paragraph} if segment.paragraph else {})


def read_paragraph(written: object) -> str:
    """Return the paragraph of a segment's file; empty if it has none, as those of earlier versions."""
    fields = _Fields(written, "a segment")
    return fields.text("paragraph") if "paragraph" in fields else ""


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


def read_record(written: object) -> SegmentRecord:
    """Return the record in a JSON object. Raises ExportFormatError for the first mistake."""
    fields = _Fields(written, "a segment")
    start, end = fields.number("start_turn"), fields.number("end_turn", least=-1)
    if end < start - 1:
        raise ExportFormatError(
            f'"end_turn" is {end} and "start_turn" {start}: a segment does not end before it begins.'
        )
    flags = _Fields(fields.raw("metadata"), '"metadata"')
    relevance = fields.real("relevance_score")
    if not 0.0 <= relevance <= 1.0:
        raise ExportFormatError('"relevance_score" must be between 0 and 1, for example 0.85.')
    return SegmentRecord(
        segment_id=SegmentId(fields.text("segment_id")),
        topic=fields.text("topic"),
        session_id=SessionId(fields.text("session_id")),
        start_turn=start,
        end_turn=end,
        original_tokens=fields.number("original_tokens"),
        compressed_tokens=fields.number("compressed_tokens"),
        compression_ratio=fields.real("compression_ratio"),
        compressed_at=fields.moment("compressed_at"),
        last_accessed=fields.moment("last_accessed"),
        access_count=fields.number("access_count"),
        relevance_score=relevance,
        compressed_content=fields.text("compressed_content"),
        key_decisions=fields.texts("key_decisions"),
        key_files=fields.texts("key_files"),
        metadata=RecordMetadata(
            contains_code=flags.flag("contains_code"),
            contains_errors=flags.flag("contains_errors"),
            task_completed=flags.flag("task_completed"),
        ),
    )


def queue_json(queue: CompressionQueue) -> dict[str, object]:
    return {
        "pending": [
            {
                "segment_id": each.segment_id,
                "topic": each.topic,
                "start_turn": each.start_turn,
                "end_turn": each.end_turn,
                "message_count": each.message_count,
                "turns_since_mention": each.turns_since_mention,
                "queued_at_turn": each.queued_at_turn,
                "timestamp": iso(each.timestamp),
            }
            for each in queue.pending
        ],
        "compressed": [
            {
                "segment_id": each.segment_id,
                "topic": each.topic,
                "compressed_at_turn": each.compressed_at_turn,
                "original_tokens": each.original_tokens,
                "compressed_tokens": each.compressed_tokens,
                "compression_ratio": each.compression_ratio,
                "storage_location": each.storage_location,
                "timestamp": iso(each.timestamp),
            }
            for each in queue.compressed
        ],
        "last_check_turn": queue.last_check_turn,
    }


def read_queue(written: object) -> CompressionQueue:
    """Return the queue in a JSON object. Raises ExportFormatError for the first mistake."""
    fields = _Fields(written, "a queue")
    return CompressionQueue(
        tuple(map(_pending, fields.list("pending"))),
        tuple(map(_compressed, fields.list("compressed"))),
        fields.number("last_check_turn"),
    )


def is_queue(written: object) -> bool:
    """Return whether a JSON object looks like a queue rather than a segment."""
    return isinstance(written, dict) and "last_check_turn" in written


def iso(at: float) -> str:
    """Return a time as it is written in the files. `at`: UTC epoch seconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _pending(written: object) -> PendingEntry:
    fields = _Fields(written, 'an entry of "pending"')
    return PendingEntry(
        segment_id=SegmentId(fields.text("segment_id")),
        topic=fields.text("topic"),
        start_turn=fields.number("start_turn"),
        end_turn=fields.number("end_turn", least=-1),
        message_count=fields.number("message_count"),
        turns_since_mention=fields.number("turns_since_mention"),
        queued_at_turn=fields.number("queued_at_turn"),
        timestamp=fields.moment("timestamp"),
    )


def _compressed(written: object) -> CompressedEntry:
    fields = _Fields(written, 'an entry of "compressed"')
    return CompressedEntry(
        segment_id=SegmentId(fields.text("segment_id")),
        topic=fields.text("topic"),
        compressed_at_turn=fields.number("compressed_at_turn"),
        original_tokens=fields.number("original_tokens"),
        compressed_tokens=fields.number("compressed_tokens"),
        compression_ratio=fields.real("compression_ratio"),
        storage_location=fields.text("storage_location"),
        timestamp=fields.moment("timestamp"),
    )


class _Fields:
    """Reads the fields of one JSON object. Raises ExportFormatError for a missing or wrong field."""

    def __init__(self, written: object, what: str) -> None:
        if not isinstance(written, dict):
            raise ExportFormatError(f"{what[0].upper()}{what[1:]} must be a JSON object, in braces.")
        self._written: dict[str, Any] = written
        self._what = what

    def __contains__(self, key: str) -> bool:
        return key in self._written

    def raw(self, key: str) -> object:
        value = self._written.get(key, _MISSING)
        if value is _MISSING:
            raise ExportFormatError(f'"{key}" is missing in {self._what}.')
        return value

    def text(self, key: str) -> str:
        value = self.raw(key)
        if not isinstance(value, str) or not value.strip():
            raise ExportFormatError(f'"{key}" in {self._what} must be some text, for example "{key}": "…".')
        return value

    def number(self, key: str, *, least: int = 0) -> int:
        value = self.raw(key)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
            raise ExportFormatError(f'"{key}" in {self._what} must be a whole number of {least} or more.')
        return value

    def real(self, key: str) -> float:
        value = self.raw(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 <= value < 1e12:
            raise ExportFormatError(f'"{key}" in {self._what} must be a number of 0 or more, for example 6.3.')
        return float(value)

    def flag(self, key: str) -> bool:
        value = self.raw(key)
        if not isinstance(value, bool):
            raise ExportFormatError(f'"{key}" in {self._what} must be true or false.')
        return value

    def list(self, key: str) -> list[object]:
        value = self.raw(key)
        if not isinstance(value, list):
            raise ExportFormatError(f'"{key}" in {self._what} must be a list, in brackets.')
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.list(key)
        if not all(isinstance(each, str) for each in value):
            raise ExportFormatError(f'"{key}" in {self._what} must be a list of texts.')
        return tuple(str(each) for each in value)

    def moment(self, key: str) -> float:
        """Return a time in UTC epoch seconds. A time without an offset is read as UTC."""
        value = self.raw(key)
        try:
            at = datetime.fromisoformat(str(value))
        except ValueError:
            raise ExportFormatError(
                f'"{key}" in {self._what} must be a time, for example "{key}": "2026-02-16T15:32:00".'
            ) from None
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
