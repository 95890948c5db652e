"""Turns, notes and folds as JSON for the dashboard's page. Pure. Texts are sent as they are; the page escapes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bot.texts.text import all_in_language

if TYPE_CHECKING:
    from bot.web.dashboard_port import Json
    from compaction.model import Note, Segment, Turn


def turn_json(turn: Turn) -> Json:
    """Return a turn. `gone`: its words were forgotten or are withheld."""
    return {
        "seq": turn.seq,
        "kind": turn.kind.value,
        "at": turn.started_at,
        "gone": turn.tombstone,
        "answers": turn.answers,
        "parts": [{"id": part.speaker_id, "who": part.speaker, "text": part.text} for part in turn.parts],
    }


def note_json(note: Note) -> Json:
    return {
        "id": note.id,
        "at": note.at,
        "who": note.who,
        "what": note.what,
        "why": note.why,
        "source": note.source.value,
    }


def segment_json(segment: Segment, *, with_gist: bool) -> Json:
    """Return a fold. `with_gist`: with what its turns were about."""
    return {
        "start": segment.start,
        "end": segment.end,
        "at": segment.created_at,
        "facts": len(segment.facts),
        "prompt_version": segment.prompt_version,
        "gist": segment.gist if with_gist else "",
    }


def server_sent_event(number: str, kind: str, data: Json, language: str) -> str:
    """Return one event as a page in that language receives it. JSON has no line breaks of its own."""
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(all_in_language(data, language))}\n\n"
