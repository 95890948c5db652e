"""Writes and reads segments and the compression queue in the JSON format of spec 3. Pure.

Times are ISO 8601 in UTC, with the part of a second, which tells what was made before something was forgotten and what
after it. `end_turn` is the last turn of a segment (inclusive).
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
# Bounds of what a file may hold. One value outside them would break search and export for every session: no time before
# 1970 or after 9999 can be computed with, and no turn beyond SQLite's integers stored.
LATEST = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
# Ten years of one turn a minute.
MOST_TURNS = 5_000_000
_MOST_COUNT = 10**12
_MOST_ID_CHARS = 200
_MOST_TEXT_CHARS = 100_000
_MOST_ENTRIES = 10_000


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


def read_record(written: object, *, latest: float = LATEST) -> SegmentRecord:
    """Return the record in a JSON object. Raises ExportFormatError for the first mistake.

    `latest`: the latest time that a file may hold, in UTC epoch seconds.
    """
    fields = _Fields(written, "a segment", latest)
    start, end = fields.turn("start_turn"), fields.turn("end_turn", least=-1)
    if end < start - 1:
        raise ExportFormatError(
            f'"end_turn" is {end} and "start_turn" {start}: a segment does not end before it begins.'
        )
    flags = _Fields(fields.raw("metadata"), '"metadata"', latest)
    relevance = fields.real("relevance_score")
    if not 0.0 <= relevance <= 1.0:
        raise ExportFormatError('"relevance_score" must be between 0 and 1, for example 0.85.')
    return SegmentRecord(
        segment_id=SegmentId(fields.name("segment_id")),
        topic=fields.text("topic"),
        session_id=SessionId(fields.name("session_id")),
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


def read_queue(written: object, *, latest: float = LATEST) -> CompressionQueue:
    """Return the queue in a JSON object. Raises ExportFormatError as `read_record` does."""
    fields = _Fields(written, "a queue", latest)
    return CompressionQueue(
        tuple(_pending(each, latest) for each in fields.list("pending")),
        tuple(_compressed(each, latest) for each in fields.list("compressed")),
        fields.turn("last_check_turn"),
    )


def is_queue(written: object) -> bool:
    """Return whether a JSON object looks like a queue rather than a segment."""
    return isinstance(written, dict) and "last_check_turn" in written


def iso(at: float) -> str:
    """Return a time as it is written in the files. `at`: UTC epoch seconds."""
    return datetime.fromtimestamp(at, UTC).isoformat()


def _pending(written: object, latest: float) -> PendingEntry:
    fields = _Fields(written, 'an entry of "pending"', latest)
    return PendingEntry(
        segment_id=SegmentId(fields.name("segment_id")),
        topic=fields.text("topic"),
        start_turn=fields.turn("start_turn"),
        end_turn=fields.turn("end_turn", least=-1),
        message_count=fields.turn("message_count"),
        turns_since_mention=fields.turn("turns_since_mention"),
        queued_at_turn=fields.turn("queued_at_turn"),
        timestamp=fields.moment("timestamp"),
    )


def _compressed(written: object, latest: float) -> CompressedEntry:
    fields = _Fields(written, 'an entry of "compressed"', latest)
    return CompressedEntry(
        segment_id=SegmentId(fields.name("segment_id")),
        topic=fields.text("topic"),
        compressed_at_turn=fields.turn("compressed_at_turn"),
        original_tokens=fields.number("original_tokens"),
        compressed_tokens=fields.number("compressed_tokens"),
        compression_ratio=fields.real("compression_ratio"),
        storage_location=fields.text("storage_location"),
        timestamp=fields.moment("timestamp"),
    )


class _Fields:
    """Reads the fields of one JSON object. Raises ExportFormatError for a missing or wrong field, and for a value that
    is out of range.
    """

    def __init__(self, written: object, what: str, latest: float = LATEST) -> None:
        if not isinstance(written, dict):
            raise ExportFormatError(f"{what[0].upper()}{what[1:]} must be a JSON object, in braces.")
        self._written: dict[str, Any] = written
        self._what = what
        self._latest = latest

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
        self._check_text(key, value, _MOST_TEXT_CHARS)
        return value

    def name(self, key: str) -> str:
        """Return an id."""
        value = self.text(key)
        self._check_text(key, value, _MOST_ID_CHARS)
        return value

    def _check_text(self, key: str, value: str, most_chars: int) -> None:
        if len(value) > most_chars:
            raise ExportFormatError(f'"{key}" in {self._what} is longer than {most_chars} characters.')
        if any("\ud800" <= each <= "\udfff" for each in value):
            raise ExportFormatError(f'"{key}" in {self._what} holds half a character (a lone surrogate).')

    def number(self, key: str, *, least: int = 0, most: int = _MOST_COUNT) -> int:
        value = self.raw(key)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ExportFormatError(f'"{key}" in {self._what} must be a whole number from {least} to {most}.')
        return value

    def turn(self, key: str, *, least: int = 0) -> int:
        """Return the number of a turn, or a number of turns."""
        return self.number(key, least=least, most=MOST_TURNS)

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
        if len(value) > _MOST_ENTRIES:
            raise ExportFormatError(f'"{key}" in {self._what} has more than {_MOST_ENTRIES} entries.')
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.list(key)
        if not all(isinstance(each, str) for each in value):
            raise ExportFormatError(f'"{key}" in {self._what} must be a list of texts.')
        for each in value:
            self._check_text(key, str(each), _MOST_TEXT_CHARS)
        return tuple(str(each) for each in value)

    def moment(self, key: str) -> float:
        """Return a time in UTC epoch seconds, 1970 or later. A time without an offset is read as UTC."""
        value = self.raw(key)
        try:
            at = datetime.fromisoformat(str(value))
        except ValueError:
            raise ExportFormatError(
                f'"{key}" in {self._what} must be a time, for example "{key}": "2026-02-16T15:32:00".'
            ) from None
        moment = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        if not 0.0 <= moment <= self._latest:
            raise ExportFormatError(
                f'"{key}" in {self._what} must be a time from 1970 to {iso(self._latest)}. Correct it, or this '
                "machine's clock."
            )
        return moment
