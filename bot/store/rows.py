"""Converts turns, notes, segments and their tiers to database columns and back, without loss.

A row that cannot be read raises `UnreadableRowError`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Row, func

from bot.store.tables import segment_tiers
from bot.texts.text import OperatorText, Text
from compaction.errors import StoreError
from compaction.memory.segment_record import RecordMetadata, SegmentRecord, compression_ratio
from compaction.memory.tiers import TieredSegment
from compaction.model import (
    Fact,
    FactKind,
    Note,
    NoteId,
    NoteSource,
    Segment,
    SegmentId,
    Seq,
    SessionId,
    Turn,
    TurnKind,
    TurnPart,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


T = TypeVar("T")

# What reading values of other kinds than expected raises.
UNREADABLE = (ValueError, TypeError, LookupError, RecursionError)
# What stands in a text for bytes that are no UTF-8 (`bot.store.dialects.sqlite`). In the JSON that is stored it is
# escaped.
_LOST = "\N{REPLACEMENT CHARACTER}"


_DAMAGED = Text("Some of what I have stored is damaged.")


class UnreadableRowError(StoreError):
    """A stored row cannot be read: it is damaged, or a newer Roomtone wrote it. The operator must act."""


def read_from(table: str, *, key: str = "id") -> Callable[[Callable[[Row[Any]], T]], Callable[[Row[Any]], T]]:
    """Return a decorator: what cannot be read of a row of `table` raises `UnreadableRowError`. `key`: the column that
    tells it apart from the session's other rows.
    """

    def decorate(read: Callable[[Row[Any]], T]) -> Callable[[Row[Any]], T]:
        @wraps(read)
        def checked(row: Row[Any]) -> T:
            try:
                return read(row)
            except UNREADABLE:
                # Not from the cause: it may quote what somebody said.
                raise UnreadableRowError(
                    OperatorText(
                        "Row {row} of {table} in session {session} cannot be read: it is damaged. "
                        "Restore a backup with `roomtone restore FILE`.",
                        _DAMAGED,
                        row=str(getattr(row, key)),
                        table=table,
                        session=str(row.session_id),
                    )
                ) from None

        return checked

    return decorate


def turn_values(session_id: SessionId, turn: Turn) -> dict[str, object]:
    return {
        "session_id": session_id,
        "seq": turn.seq,
        "kind": turn.kind.value,
        "started_at": turn.started_at,
        "ended_at": turn.ended_at,
        "parts": json.dumps([[part.speaker_id, part.speaker, part.text, part.spoken_s] for part in turn.parts]),
        "tombstone": turn.tombstone,
        "answers": turn.answers,
        "called": turn.called,
        "told_to": json.dumps(turn.told_to),
        "sources": json.dumps(turn.sources),
    }


@read_from("turns", key="seq")
def turn_from_row(row: Row[Any]) -> Turn:
    return Turn(
        seq=Seq(row.seq),
        kind=TurnKind(row.kind),
        started_at=row.started_at,
        ended_at=row.ended_at,
        parts=parts_of(row.parts),
        tombstone=bool(row.tombstone),
        answers=None if row.answers is None else Seq(row.answers),
        called=bool(row.called),
        told_to=tuple(map(str, json.loads(row.told_to))),
        sources=tuple(map(str, json.loads(row.sources))),
    )


def parts_of(stored: str) -> tuple[TurnPart, ...]:
    """Return the parts of a turn, from their JSON. Raises one of `UNREADABLE`."""
    if _LOST in stored:
        # Perhaps of the id of who has spoken, who could not be forgotten then.
        raise ValueError
    return tuple(
        TurnPart(_text(speaker_id), _text(speaker), _text(text), float(spoken_s))
        for speaker_id, speaker, text, spoken_s in map(_list, _list(json.loads(stored)))
    )


def note_values(session_id: SessionId, note: Note) -> dict[str, object]:
    """Return the columns of a note, without its position."""
    return {
        "session_id": session_id,
        "id": note.id,
        "at": note.at,
        "who": note.who,
        "what": note.what,
        "why": note.why,
        "source": note.source.value,
        "frame_hash": note.frame_hash,
        "person_id": note.person_id,
    }


@read_from("notes")
def note_from_row(row: Row[Any]) -> Note:
    return Note(
        id=NoteId(row.id),
        at=row.at,
        who=row.who,
        what=row.what,
        why=row.why,
        source=NoteSource(row.source),
        frame_hash=row.frame_hash,
        person_id=row.person_id,
    )


def segment_values(session_id: SessionId, segment: Segment) -> dict[str, object]:
    """Return the columns of a segment, without its position."""
    return {
        "session_id": session_id,
        "id": segment.id,
        "start_seq": segment.start,
        "end_seq": segment.end,
        "started_at": segment.started_at,
        "ended_at": segment.ended_at,
        "heading": segment.heading,
        "gist": segment.gist,
        "facts": json.dumps([_fact_fields(fact) for fact in segment.facts]),
        "note_ids": json.dumps(segment.note_ids),
        "summariser": segment.prompt_version,
        "closing": segment.closing,
        "created_at": segment.created_at,
        "original_tokens": segment.original_tokens,
        "compressed_tokens": segment.compressed_tokens,
        "pruned": segment.pruned,
        "paragraph": segment.paragraph,
    }


@read_from("segments")
def segment_from_row(row: Row[Any]) -> Segment:
    return Segment(
        id=SegmentId(row.id),
        session_id=SessionId(row.session_id),
        start=Seq(row.start_seq),
        end=Seq(row.end_seq),
        started_at=row.started_at,
        ended_at=row.ended_at,
        heading=row.heading,
        gist=row.gist,
        facts=tuple(map(fact_of, _list(json.loads(row.facts)))),
        note_ids=note_ids_of(row.note_ids),
        prompt_version=row.summariser,
        closing=bool(row.closing),
        created_at=row.created_at,
        original_tokens=row.original_tokens,
        compressed_tokens=row.compressed_tokens,
        pruned=bool(row.pruned),
        paragraph=row.paragraph,
    )


def _fact_fields(fact: Fact) -> dict[str, object]:
    return {
        "turns": fact.turns,
        "text": fact.text,
        "kind": fact.kind.value,
        "importance": fact.importance,
        "closes": fact.closes,
        "speaker": fact.speaker,
        "at": fact.at,
        "owner": fact.owner,
        "until": fact.until,
        "note_id": fact.note_id,
    }


def fact_of(fields: dict[str, Any]) -> Fact:
    """Return a fact from its fields. Raises one of `UNREADABLE`."""
    seqs = _list(fields["turns"])
    if not seqs or not all(isinstance(seq, int) for seq in seqs):
        raise ValueError
    return Fact(
        turns=tuple(map(Seq, seqs)),
        text=_text(fields["text"]),
        kind=FactKind(fields["kind"]),
        importance=fields["importance"],
        closes=tuple(map(_text, _list(fields["closes"]))),
        speaker=_text(fields["speaker"]),
        at=fields["at"],
        owner=_text(fields["owner"]),
        until=_text(fields["until"]),
        note_id=fields["note_id"],
    )


def note_ids_of(stored: str) -> tuple[NoteId, ...]:
    """Return the ids of a segment's notes, from their JSON. Raises one of `UNREADABLE`."""
    return tuple(NoteId(_text(note_id)) for note_id in _list(json.loads(stored)))


@dataclass(frozen=True, slots=True)
class StoredTier:
    """A stored segment's tier state, with the fields that `TieredSegment` lacks: how often it was retrieved, when last
    (UTC epoch seconds), and its resulting relevance. `known`: it has a row already.
    """

    kept: TieredSegment
    access_count: int = 0
    last_accessed: float | None = None
    relevance: float | None = None
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
    return replace(
        record,
        access_count=tier.access_count,
        last_accessed=record.last_accessed if tier.last_accessed is None else tier.last_accessed,
        relevance_score=record.relevance_score if tier.relevance is None else tier.relevance,
    )


def tier_from_row(segment: Segment, row: Row[Any] | None, counts: Mapping[SegmentId, int]) -> StoredTier:
    """Return a segment's tier state from its row. Without a row it is new; `counts` has its number of messages.

    Raises `UnreadableRowError`.
    """
    if row is None:
        return StoredTier(TieredSegment(segment, counts.get(segment.id, 0), max(segment.start, segment.end - 1)))
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
    return StoredTier(kept, row.access_count, row.last_accessed, row.relevance_score, known=True)


def _record(segment: Segment, row: Row[Any]) -> SegmentRecord | None:
    if row.compressed_at is None:
        return None
    key_decisions, key_files = _texts_of_record(row)
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
        key_decisions=key_decisions,
        key_files=key_files,
        metadata=RecordMetadata(row.contains_code, row.contains_errors, row.task_completed),
    )


@read_from("segment_tiers", key="segment_id")
def _texts_of_record(row: Row[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    decisions, files = (tuple(map(_text, _list(json.loads(each)))) for each in (row.key_decisions, row.key_files))
    return decisions, files


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value
