"""What a model is sent of a session: the parts in their order, within the budget, and the proof of what they cover.

Pure. `SessionMemory.context` says what the session has; `build_payload` makes messages of it; `coverage` reads
back from the messages which turns they hold, so that a hole could not hide behind the code that made it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from compaction.budget.fit import Cut, fit
from compaction.budget.tokens import MESSAGE_OVERHEAD_TOKENS, estimate_text_tokens
from compaction.model import Mode, Seq, Turn, TurnKind
from compaction.wording import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from compaction.model import Note
    from compaction.rendering import RenderedSummary

# Spec 1, 'What the LLM sees today': 1,200 characters a turn.
MAX_TURN_CHARS = 1_200
# Under pressure these newest turns are the last to go.
NEWEST_TURNS = 10
FORGOTTEN = "(forgotten at somebody's wish)"


class PartKind(StrEnum):
    """What a part of the payload is, in the order in which parts are sent."""

    SYSTEM = "system"
    SUMMARY = "summary"
    EVICTION_NOTE = "eviction_note"
    TURN = "turn"
    NOTE = "note"
    RECALL = "recall"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """One message for the model. It holds, or stands for, turns `seq_from <= seq <= seq_to` (None: no turns).

    `timestamp`: UTC epoch seconds of the first thing in it, where it has one.
    """

    role: str
    kind: PartKind
    seq_from: Seq | None
    seq_to: Seq | None
    tokens: int
    content: str
    timestamp: float | None = None


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a session has to say for itself at one moment. Times: UTC epoch seconds.

    `summary` stands for turns 0 to `cursor - 1`, said between `summary_started_at` and `summary_ended_at`, and is
    None before the first landing. `window`: turns from the cursor on, without `current`.
    """

    mode: Mode
    total_turns: int
    cursor: Seq
    summary: RenderedSummary | None
    summary_revision: int
    summary_started_at: float | None
    summary_ended_at: float | None
    window: tuple[Turn, ...]
    live_notes: tuple[Note, ...]
    current: Turn | None
    max_input_tokens: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """Where each turn of a session is in one payload, as inclusive seq ranges. A turn counts once: as verbatim
    before summarised before evicted. `missing` is nowhere, which is a defect in every mode but `off`."""

    summarised: tuple[tuple[int, int], ...]
    verbatim: tuple[tuple[int, int], ...]
    evicted: tuple[tuple[int, int], ...]
    missing: tuple[tuple[int, int], ...]


def build_payload(
    context: SessionContext,
    *,
    system: Sequence[str] = (),
    recall: Sequence[PayloadPart] = (),
    max_input_tokens: int | None = None,
    zone: tzinfo = UTC,
    searchable: bool = False,
) -> tuple[PayloadPart, ...]:
    """Return the messages for one model call, in order, costing at most `max_input_tokens` (the context's own
    unless given).

    `system`: prompts and tool rules, one message each, never cut. `recall`: quotes found by memory search. `zone`:
    whose clock the times are told in. `searchable`: the model has memory search, so an eviction note points there.
    Raises ContextOverflowError when not even the system prompts and the current turn fit. Deterministic.
    """
    limit = context.max_input_tokens if max_input_tokens is None else max_input_tokens
    summary = _summary_part(context, zone)
    return fit(
        fixed=[_part("system", PartKind.SYSTEM, text) for text in system],
        summary=summary,
        turns=[_turn_part(turn, PartKind.TURN, zone) for turn in context.window],
        notes=[_note_part(note, zone) for note in context.live_notes],
        recall=recall,
        current=None if context.current is None else _turn_part(context.current, PartKind.CURRENT, zone),
        max_input_tokens=limit,
        newest=NEWEST_TURNS,
        describe=lambda cut: _eviction_note(cut, zone, searchable=searchable),
    )


def coverage(payload: Iterable[PayloadPart], total_turns: int) -> Coverage:
    """Return where each of the session's turns is, read from the payload itself."""
    held: dict[int, str] = {}
    rank = {"verbatim": 0, "summarised": 1, "evicted": 2}
    places = {
        PartKind.TURN: "verbatim",
        PartKind.CURRENT: "verbatim",
        PartKind.SUMMARY: "summarised",
        PartKind.EVICTION_NOTE: "evicted",
    }
    for part in payload:
        place = places.get(part.kind)
        if place is None or part.seq_from is None or part.seq_to is None:
            continue
        for seq in range(part.seq_from, part.seq_to + 1):
            if seq not in held or rank[place] < rank[held[seq]]:
                held[seq] = place
    by_place: dict[str, list[int]] = {"verbatim": [], "summarised": [], "evicted": [], "missing": []}
    for seq in range(total_turns):
        by_place[held.get(seq, "missing")].append(seq)
    return Coverage(**{place: _ranges(seqs) for place, seqs in by_place.items()})


def context_built_fields(payload: Sequence[PayloadPart], *, summary_revision: int) -> dict[str, object]:
    """Return the fields of the `model_context_built` log line: with them and the store, what the model saw can be
    rebuilt. `tokens` is by kind of part; `evicted` the inclusive range an eviction note stands for."""
    seqs = [
        seq
        for part in payload
        if part.kind in {PartKind.TURN, PartKind.CURRENT}
        for seq in (part.seq_from, part.seq_to)
        if seq is not None
    ]
    tokens: dict[str, int] = {}
    for part in payload:
        tokens[part.kind.value] = tokens.get(part.kind.value, 0) + part.tokens
    evicted = [
        [part.seq_from, part.seq_to]
        for part in payload
        if part.kind is PartKind.EVICTION_NOTE and part.seq_from is not None
    ]
    return {
        "seq_from": min(seqs, default=None),
        "seq_to": max(seqs, default=None),
        "summary_revision": summary_revision,
        "tokens": tokens,
        "evicted": evicted[0] if evicted else None,
    }


def turn_text(turn: Turn, zone: tzinfo = UTC, *, max_chars: int = MAX_TURN_CHARS) -> str:
    """Return a turn as a model reads it: `[21:04] Ada: …`, one line a speaker, at most `max_chars`.

    A longer one is cut in its longest parts, and says which turn to recall for the whole.
    """
    head = f"[{clock_text(turn.started_at, zone)}] "
    if turn.tombstone:
        return f"{head}{FORGOTTEN}"
    lines = [_line(turn.kind, plain(part.speaker), plain(part.text)) for part in turn.parts]
    whole = head + "\n".join(lines)
    if len(whole) <= max_chars:
        return whole
    mark = f" … [cut; turn {turn.seq} has all of it]"
    room = max_chars - len(head) - len(mark) - (len(lines) - 1)
    return head + "\n".join(_shortened(lines, room)) + mark


def clock_text(at: float, zone: tzinfo = UTC) -> str:
    """Return a time of day, like 21:04. `at`: UTC epoch seconds."""
    return datetime.fromtimestamp(at, zone).strftime("%H:%M")


def _line(kind: TurnKind, speaker: str, text: str) -> str:
    if kind in {TurnKind.MEMBERSHIP, TurnKind.EFFECT}:
        return f"({text})" if text.startswith(speaker) else f"({speaker} {text})"
    return f"{speaker}: {text}"


def _shortened(lines: Sequence[str], room: int) -> list[str]:
    """Return the lines cut to `room` characters together: short ones stay whole, long ones share what is left."""
    share = room // len(lines)
    left = room
    for done, length in enumerate(sorted(map(len, lines))):
        share = left // (len(lines) - done)
        if length > share:
            break
        left -= length
    return [line if len(line) <= share else line[: max(0, share)].rstrip() for line in lines]


def _summary_part(context: SessionContext, zone: tzinfo) -> PayloadPart | None:
    if context.summary is None or context.cursor == 0:
        # Notes alone can be folded before any turn is; they stand for no turn.
        if context.summary is None:
            return None
        return _part("system", PartKind.SUMMARY, f"Earlier in this session: {context.summary.text}")
    said = ""
    if context.summary_started_at is not None and context.summary_ended_at is not None:
        said = (
            f", said from {clock_text(context.summary_started_at, zone)} "
            f"to {clock_text(context.summary_ended_at, zone)}"
        )
    return _part(
        "system",
        PartKind.SUMMARY,
        f"Earlier in this session: {context.summary.text}\n(turns 0 to {context.cursor - 1}{said})",
        seq_from=Seq(0),
        seq_to=Seq(context.cursor - 1),
        timestamp=context.summary_started_at,
    )


def _turn_part(turn: Turn, kind: PartKind, zone: tzinfo) -> PayloadPart:
    role = "assistant" if turn.kind is TurnKind.ASSISTANT else "user"
    return _part(role, kind, turn_text(turn, zone), seq_from=turn.seq, seq_to=turn.seq, timestamp=turn.started_at)


def _note_part(note: Note, zone: tzinfo) -> PayloadPart:
    text = f"[{clock_text(note.at, zone)}] On {plain(note.who)}'s screen: {plain(note.what)}"
    return _part("system", PartKind.NOTE, text, timestamp=note.at)


def _eviction_note(cut: Cut[PayloadPart], zone: tzinfo, *, searchable: bool) -> PayloadPart:
    """Return the one note for everything that was left out."""
    left_out: list[str] = []
    if cut.turns:
        first, last = cut.turns[0].timestamp, cut.turns[-1].timestamp
        times = ""
        if first is not None and last is not None:
            times = f", said from {clock_text(first, zone)} to {clock_text(last, zone)}"
        tokens = sum(part.tokens for part in cut.turns)
        left_out.append(f"turns {cut.turns[0].seq_from} to {cut.turns[-1].seq_to} ({tokens} tokens{times})")
    if cut.summary is not None:
        left_out.append(f"the summary of what was before turn {(cut.summary.seq_to or 0) + 1}")
    if cut.notes:
        left_out.append(f"{len(cut.notes)} notes of what is on screen")
    if cut.recall:
        left_out.append(f"{len(cut.recall)} recalled quotes")
    hint = " All of it is stored; memory_search finds it." if searchable else ""
    stands_for = [part for part in (cut.summary, *cut.turns) if part is not None and part.seq_from is not None]
    return _part(
        "system",
        PartKind.EVICTION_NOTE,
        f"[Context rolled: left out for want of room: {'; '.join(left_out)}.{hint}]",
        seq_from=stands_for[0].seq_from if stands_for else None,
        seq_to=stands_for[-1].seq_to if stands_for else None,
        timestamp=stands_for[0].timestamp if stands_for else None,
    )


def _part(
    role: str,
    kind: PartKind,
    content: str,
    *,
    seq_from: Seq | None = None,
    seq_to: Seq | None = None,
    timestamp: float | None = None,
) -> PayloadPart:
    tokens = MESSAGE_OVERHEAD_TOKENS + estimate_text_tokens(content)
    return PayloadPart(role, kind, seq_from, seq_to, tokens, content, timestamp)


def _ranges(seqs: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return ascending numbers as inclusive ranges."""
    ranges: list[tuple[int, int]] = []
    for seq in seqs:
        if ranges and ranges[-1][1] == seq - 1:
            ranges[-1] = (ranges[-1][0], seq)
        else:
            ranges.append((seq, seq))
    return tuple(ranges)
