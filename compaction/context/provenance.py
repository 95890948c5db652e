"""Rebuilds what a model was sent for a reply, from one `model_context_built` log line and the store. Pure.

The log line contains no words of the conversation; the words come from the store. The line's digest shows whether the
rebuilt payload is exact. If it is not, `RebuiltPayload.lost` says what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from compaction.budget.trim import place_of_note
from compaction.context.build import SessionContext, build_payload
from compaction.memory.passage import source_parts
from compaction.memory.people import person_facts_part
from compaction.memory.quotes import parse_citation, quote_part, quoted_parts
from compaction.model import Mode, Note, Seq, Turn
from compaction.payload import PartKind, PayloadPart, keep_as_sent, make_part, payload_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compaction.context.record import ContextRecord
    from compaction.memory.people import PersonFact
    from compaction.model import Segment

# No limit is needed: the payload fitted when it was sent, so nothing may be left out of it now.
_NO_LIMIT = 1_000_000_000
# Turns that a sentence names.
_LISTED = 8
_REBUILT = frozenset(
    {
        PartKind.SYSTEM,
        PartKind.SUMMARY,
        PartKind.PARTICIPANTS,
        PartKind.EVICTION_NOTE,
        PartKind.TURN,
        PartKind.NOTE,
        PartKind.RECALL,
        PartKind.CURRENT,
        PartKind.CONTINUITY,
    }
)


@dataclass(frozen=True, slots=True)
class StoredSources:
    """What the store has for one log line.

    `turns`: the turns of the window and the current turn, by seq. `summary`: the text of the summary at that revision.
    `segments`: the segments that were stored by then, in order. `quoted`: the quoted turn or note, by the ref of its
    quote. `names`: the display names at that time, by id.
    """

    turns: Mapping[int, Turn] = field(default_factory=dict)
    summary: str | None = None
    segments: tuple[Segment, ...] = ()
    notes: Mapping[str, Note] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    people: Mapping[str, PersonFact] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    quoted: Mapping[str, Turn | Note] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RebuiltPayload:
    """A rebuilt payload.

    `exact`: whether the payload equals what was sent, judged by the digest; None if the line has no digest. `lost`: one
    sentence for each thing that is no longer stored.
    """

    payload: tuple[PayloadPart, ...]
    exact: bool | None
    lost: tuple[str, ...]


def rebuild_payload(record: ContextRecord, kept: StoredSources) -> RebuiltPayload:
    """Return the payload that a model was sent, rebuilt from the store. Deterministic."""
    lost: list[str] = []
    gone = sorted({kind for kind, digest in record.texts if digest not in kept.texts})
    if gone:
        lost.append(f"What was sent as {', '.join(gone)} is not stored any more: something was forgotten since.")
    payload = _realtime(record, kept, lost) if record.spoken else _written(record, kept, lost)
    if record.eviction is not None:
        payload.insert(_place_of_eviction(payload, record), _eviction(record))
    payload += _as_sent(record, kept, tools=True)
    known = {each.value for each in _REBUILT} | {kind for kind, _ in record.texts}
    unknown = [kind for kind in record.tokens if kind not in known]
    if unknown:
        lost.append(f"What was sent as {', '.join(unknown)} is not stored.")
    exact = None if record.digest is None else payload_digest(payload) == record.digest
    return RebuiltPayload(tuple(payload), exact, tuple(lost))


def _written(record: ContextRecord, kept: StoredSources, lost: list[str]) -> list[PayloadPart]:
    current = None if record.answer_to is None else kept.turns.get(record.answer_to)
    if record.answer_to is not None and current is None:
        lost.append(f"Turn {record.answer_to}, the one that was answered, is not stored any more.")
    window = _window(record, kept, lost)
    prompts = _prompts(record, kept, lost)
    first = len(prompts) - record.reply_prompts
    return list(
        build_payload(
            replace(
                _context(record, window),
                summary=_summary(record, kept, lost),
                summary_started_at=_span(kept)[0],
                summary_ended_at=_span(kept)[1],
                live_notes=_notes(record, kept, lost),
                current=current,
            ),
            system=[text for text in prompts[:first] if text is not None],
            reply_prompts=[text for text in prompts[first:] if text is not None],
            participants=_participants(record, kept, lost),
            recall=_recalled(record, kept, lost),
            condensed=_as_sent(record, kept),
            zone=record.zone,
        )
    )


def _realtime(record: ContextRecord, kept: StoredSources, lost: list[str]) -> list[PayloadPart]:
    """Return the instructions of a speech-to-speech conversation and its items as text. Some items were
    sent as audio.
    """
    window = build_payload(_context(record, _window(record, kept, lost)), zone=record.zone)
    texts = _prompts(record, kept, lost)
    prompts = [make_part("system", PartKind.SYSTEM, text) for text in texts if text is not None]
    return [*prompts, *_as_sent(record, kept), *window]


def _context(record: ContextRecord, window: tuple[Turn, ...]) -> SessionContext:
    """Return the session's context, without the values that come from the store."""
    return SessionContext(
        # The mode `summary` makes `build_payload` send the window unchanged. The eviction note is taken from the log
        # line.
        mode=Mode.SUMMARY,
        total_turns=(record.seq_to or 0) + 1,
        cursor=Seq(record.cursor or 0),
        summary=None,
        summary_revision=record.summary_revision,
        summary_started_at=None,
        summary_ended_at=None,
        window=window,
        live_notes=(),
        current=None,
        max_input_tokens=_NO_LIMIT,
    )


def _as_sent(record: ContextRecord, kept: StoredSources, *, tools: bool = False) -> tuple[PayloadPart, ...]:
    """Return the parts whose text was stored as it was sent: with `tools` the tool parts, otherwise all other parts."""
    # The instructions of a speech-to-speech session have one role.
    role = "tool" if tools else "system" if record.spoken else "user"
    return tuple(
        keep_as_sent(make_part(role, PartKind(kind), kept.texts[digest]))
        for kind, digest in record.texts
        if digest in kept.texts and kind in set(PartKind) and (kind == PartKind.TOOL) is tools
    )


def _window(record: ContextRecord, kept: StoredSources, lost: list[str]) -> tuple[Turn, ...]:
    if record.seq_from is None or record.seq_to is None:
        return ()
    answered = None if record.spoken else record.answer_to
    window = range(record.seq_from, record.seq_to + 1 if PartKind.TURN.value in record.tokens else record.seq_from)
    stored = [seq for seq in sorted(kept.turns) if seq in window and seq != answered]
    # A damaged line may name any range: only what is told of it is made.
    missing = len(window) - (answered in window) - len(stored)
    if missing:
        first = (seq for seq in window if seq not in kept.turns and seq != answered)
        lost.append(f"Turns {_listed(islice(first, _LISTED), missing)} are not stored any more.")
    sent = [*stored, *([] if answered is None else [answered])]
    forgotten = [seq for seq in sent if seq in kept.turns and kept.turns[seq].tombstone]
    if forgotten:
        lost.append(f"Turns {_listed(forgotten[:_LISTED], len(forgotten))} were forgotten at somebody's wish.")
    return tuple(kept.turns[seq] for seq in stored)


def _summary(record: ContextRecord, kept: StoredSources, lost: list[str]) -> str | None:
    if PartKind.SUMMARY.value not in record.tokens or (record.summary_revision == 0 and record.texts):
        return None
    if kept.summary is None:
        lost.append(
            f"The summary of revision {record.summary_revision} is not stored: it was sent by an earlier version, or "
            "words in it were forgotten."
        )
        return None
    return kept.summary


def _span(kept: StoredSources) -> tuple[float, float] | tuple[None, None]:
    folded = [segment for segment in kept.segments if not segment.closing]
    if not folded:
        return (None, None)
    return min(each.started_at for each in folded), max(each.ended_at for each in folded)


def _notes(record: ContextRecord, kept: StoredSources, lost: list[str]) -> tuple[Note, ...]:
    gone = [note_id for note_id in record.note_ids if note_id not in kept.notes]
    if gone:
        lost.append(f"Notes of what was on screen that are not stored any more: {len(gone)}.")
    return tuple(kept.notes[note_id] for note_id in record.note_ids if note_id in kept.notes)


def _prompts(record: ContextRecord, kept: StoredSources, lost: list[str]) -> list[str | None]:
    """Return the prompts in order, None for each that is not stored."""
    gone = [digest for digest in record.system if digest not in kept.prompts]
    if gone:
        lost.append(f"System prompts that were other ones then and are not stored: {len(gone)}.")
    return [kept.prompts.get(digest) for digest in record.system]


def _participants(record: ContextRecord, kept: StoredSources, lost: list[str]) -> tuple[PayloadPart, ...]:
    gone = [fact_id for fact_id in record.participants if fact_id not in kept.people]
    if gone:
        lost.append(f"Things that people had said of themselves and that were deleted since: {len(gone)}.")
    facts = [kept.people[fact_id] for fact_id in record.participants if fact_id in kept.people]
    return (person_facts_part(facts, kept.names),) if facts else ()


def _recalled(record: ContextRecord, kept: StoredSources, lost: list[str]) -> list[PayloadPart]:
    made: list[PayloadPart] = []
    gone = 0
    for ref in record.recall:
        cited = parse_citation(ref)
        source = kept.quoted.get(ref)
        said = () if cited is None or source is None else quoted_parts(source_parts(source), cited.chosen)
        if cited is None or source is None or not said:
            gone += 1
            continue
        at = source.at if isinstance(source, Note) else source.started_at
        made.append(quote_part(cited, said, at=at, session_id=record.session_id, zone=record.zone))
    if gone:
        lost.append(f"Recalled quotes of words that are not stored any more: {gone}.")
    return made


def _eviction(record: ContextRecord) -> PayloadPart:
    first, last = (None, None) if record.evicted is None else record.evicted
    return make_part(
        "system",
        PartKind.EVICTION_NOTE,
        record.eviction or "",
        seq_from=None if first is None else Seq(first),
        seq_to=None if last is None else Seq(last),
    )


def _place_of_eviction(payload: Sequence[PayloadPart], record: ContextRecord) -> int:
    """Return the position of the eviction note: where the conversation begins. Instructions of speech-to-speech have
    notes and quotes too, which stand before it.
    """
    if not record.spoken:
        return place_of_note(payload)
    return next((at for at, each in enumerate(payload) if each.kind is PartKind.TURN), len(payload))


def _listed(first: Iterable[int], count: int) -> str:
    """Return the first `_LISTED` of `count` turns as a list in words."""
    return ", ".join(map(str, first)) + (f" and {count - _LISTED} more" if count > _LISTED else "")
