"""Converts turns, notes, segments and chapters to database columns and back, without loss."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from compaction.model import (
    Chapter,
    ChapterId,
    Fact,
    FactKind,
    Note,
    NoteId,
    NoteReason,
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
    from sqlalchemy import Row


def turn_values(session_id: SessionId, turn: Turn) -> dict[str, object]:
    return {
        "session_id": session_id,
        "seq": turn.seq,
        "kind": turn.kind.value,
        "started_at": turn.started_at,
        "ended_at": turn.ended_at,
        "parts": json.dumps([[part.speaker_id, part.speaker, part.text] for part in turn.parts]),
        "tombstone": turn.tombstone,
        "answers": turn.answers,
    }


def turn_from_row(row: Row[Any]) -> Turn:
    return Turn(
        seq=Seq(row.seq),
        kind=TurnKind(row.kind),
        started_at=row.started_at,
        ended_at=row.ended_at,
        parts=tuple(TurnPart(*part) for part in json.loads(row.parts)),
        tombstone=bool(row.tombstone),
        answers=None if row.answers is None else Seq(row.answers),
    )


def note_values(session_id: SessionId, note: Note) -> dict[str, object]:
    """Return the columns of a note, without its position."""
    return {
        "session_id": session_id,
        "id": note.id,
        "at": note.at,
        "who": note.who,
        "what": note.what,
        "why": note.why.value,
        "source": note.source.value,
        "frame_hash": note.frame_hash,
    }


def note_from_row(row: Row[Any]) -> Note:
    return Note(
        id=NoteId(row.id),
        at=row.at,
        who=row.who,
        what=row.what,
        why=NoteReason(row.why),
        source=NoteSource(row.source),
        frame_hash=row.frame_hash,
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
        "gist": segment.gist,
        "facts": json.dumps([_fact_fields(fact) for fact in segment.facts]),
        "note_ids": json.dumps(segment.note_ids),
        "summariser": segment.summariser,
        "degraded": segment.degraded,
        "closing": segment.closing,
        "created_at": segment.created_at,
        "original_tokens": segment.original_tokens,
        "compressed_tokens": segment.compressed_tokens,
        "pruned": segment.pruned,
        "paragraph": segment.paragraph,
        "paragraph_problem": segment.paragraph_problem,
    }


def segment_from_row(row: Row[Any]) -> Segment:
    return Segment(
        id=SegmentId(row.id),
        session_id=SessionId(row.session_id),
        start=Seq(row.start_seq),
        end=Seq(row.end_seq),
        started_at=row.started_at,
        ended_at=row.ended_at,
        gist=row.gist,
        facts=tuple(_fact(fields) for fields in json.loads(row.facts)),
        note_ids=tuple(NoteId(note_id) for note_id in json.loads(row.note_ids)),
        summariser=row.summariser,
        degraded=bool(row.degraded),
        closing=bool(row.closing),
        created_at=row.created_at,
        original_tokens=row.original_tokens,
        compressed_tokens=row.compressed_tokens,
        pruned=bool(row.pruned),
        paragraph=row.paragraph,
        paragraph_problem=row.paragraph_problem,
    )


def chapter_values(session_id: SessionId, chapter: Chapter) -> dict[str, object]:
    return {
        "session_id": session_id,
        "id": chapter.id,
        "level": chapter.level,
        "start_seq": chapter.start,
        "end_seq": chapter.end,
        "started_at": chapter.started_at,
        "ended_at": chapter.ended_at,
        "gist": chapter.gist,
        "refs": json.dumps(chapter.refs),
        "summariser": chapter.summariser,
        "created_at": chapter.created_at,
        "paragraph": chapter.paragraph,
        "paragraph_problem": chapter.paragraph_problem,
    }


def chapter_from_row(row: Row[Any]) -> Chapter:
    return Chapter(
        id=ChapterId(row.id),
        session_id=SessionId(row.session_id),
        level=row.level,
        start=Seq(row.start_seq),
        end=Seq(row.end_seq),
        started_at=row.started_at,
        ended_at=row.ended_at,
        gist=row.gist,
        refs=tuple(json.loads(row.refs)),
        summariser=row.summariser,
        created_at=row.created_at,
        paragraph=row.paragraph,
        paragraph_problem=row.paragraph_problem,
    )


def _fact_fields(fact: Fact) -> dict[str, object]:
    return {
        "turns": fact.turns,
        "kind": fact.kind.value,
        "speaker": fact.speaker,
        "at": fact.at,
        "text": fact.text,
        "supersedes": fact.supersedes,
        "note_id": fact.note_id,
        "subject": fact.subject,
        "importance": fact.importance,
        "quoted": fact.quoted,
    }


def _fact(fields: dict[str, Any]) -> Fact:
    return Fact(
        turns=tuple(Seq(seq) for seq in fields["turns"]),
        kind=FactKind(fields["kind"]),
        speaker=fields["speaker"],
        at=fields["at"],
        text=fields["text"],
        supersedes=tuple(fields["supersedes"]),
        note_id=fields["note_id"],
        subject=fields["subject"],
        importance=fields["importance"],
        quoted=fields["quoted"],
    )
