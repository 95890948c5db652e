"""What a model is sent of a session: the summary, the turns, the notes, in their order and within the budget.

Pure. `SessionMemory.context` says what the session has, `build_payload` makes messages of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from compaction.budget.fit import Cut, fit
from compaction.model import Mode, Seq, Turn, TurnKind
from compaction.payload import PartKind, PayloadPart, part
from compaction.wording import plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from compaction.model import Note
    from compaction.rendering import RenderedSummary

# Spec 1, 'What the LLM sees today': 1,200 characters a turn.
MAX_TURN_CHARS = 1_200
# Under pressure these newest turns are the last to go.
NEWEST_TURNS = 10
FORGOTTEN = "(forgotten at somebody's wish)"


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


def build_payload(
    context: SessionContext,
    *,
    system: Sequence[str] = (),
    recall: Sequence[PayloadPart] = (),
    participants: Sequence[PayloadPart] = (),
    max_input_tokens: int | None = None,
    zone: tzinfo = UTC,
    searchable: bool = False,
) -> tuple[PayloadPart, ...]:
    """Return the messages for one model call, in order, costing at most `max_input_tokens` (the context's own
    unless given).

    `system`: prompts and tool rules, one message each, never cut. `recall`: quotes found by memory search.
    `participants`: what is known of the people present (compaction.memory.people). `zone`: whose clock the times
    are told in. `searchable`: the model has memory search, so an eviction note points there.
    Raises ContextOverflowError when not even the system prompts and the current turn fit. Deterministic.
    """
    limit = context.max_input_tokens if max_input_tokens is None else max_input_tokens
    summary = _summary_part(context, zone)
    return fit(
        fixed=[part("system", PartKind.SYSTEM, text) for text in system],
        summary=summary,
        turns=[_turn_part(turn, PartKind.TURN, zone) for turn in context.window],
        notes=[_note_part(note, zone) for note in context.live_notes],
        recall=recall,
        current=None if context.current is None else _turn_part(context.current, PartKind.CURRENT, zone),
        max_input_tokens=limit,
        newest=NEWEST_TURNS,
        describe=lambda cut: _eviction_note(cut, zone, searchable=searchable),
    )


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
        return part("system", PartKind.SUMMARY, f"Earlier in this session: {context.summary.text}")
    said = ""
    if context.summary_started_at is not None and context.summary_ended_at is not None:
        said = (
            f", said from {clock_text(context.summary_started_at, zone)} "
            f"to {clock_text(context.summary_ended_at, zone)}"
        )
    return part(
        "system",
        PartKind.SUMMARY,
        f"Earlier in this session: {context.summary.text}\n(turns 0 to {context.cursor - 1}{said})",
        seq_from=Seq(0),
        seq_to=Seq(context.cursor - 1),
        timestamp=context.summary_started_at,
    )


def _turn_part(turn: Turn, kind: PartKind, zone: tzinfo) -> PayloadPart:
    role = "assistant" if turn.kind is TurnKind.ASSISTANT else "user"
    return part(role, kind, turn_text(turn, zone), seq_from=turn.seq, seq_to=turn.seq, timestamp=turn.started_at)


def _note_part(note: Note, zone: tzinfo) -> PayloadPart:
    text = f"[{clock_text(note.at, zone)}] On {plain(note.who)}'s screen: {plain(note.what)}"
    return part("system", PartKind.NOTE, text, timestamp=note.at, refs=(note.id,))


def _eviction_note(cut: Cut[PayloadPart], zone: tzinfo, *, searchable: bool) -> PayloadPart:
    """Return the one note for everything that was left out."""
    left_out: list[str] = []
    if cut.turns:
        first, last = cut.turns[0].timestamp, cut.turns[-1].timestamp
        times = ""
        if first is not None and last is not None:
            times = f", said from {clock_text(first, zone)} to {clock_text(last, zone)}"
        tokens = sum(each.tokens for each in cut.turns)
        left_out.append(f"turns {cut.turns[0].seq_from} to {cut.turns[-1].seq_to} ({tokens} tokens{times})")
    if cut.summary is not None:
        left_out.append(f"the summary of what was before turn {(cut.summary.seq_to or 0) + 1}")
    if cut.notes:
        left_out.append(f"{len(cut.notes)} notes of what is on screen")
    if cut.recall:
        left_out.append(f"{len(cut.recall)} recalled quotes")
    hint = " All of it is stored; memory_search finds it." if searchable else ""
    stands_for = [each for each in (cut.summary, *cut.turns) if each is not None and each.seq_from is not None]
    return part(
        "system",
        PartKind.EVICTION_NOTE,
        f"[Context rolled: left out for want of room: {'; '.join(left_out)}.{hint}]",
        seq_from=stands_for[0].seq_from if stands_for else None,
        seq_to=stands_for[-1].seq_to if stands_for else None,
        timestamp=stands_for[0].timestamp if stands_for else None,
    )
