"""What a model is sent of a session: the summary, the turns, the notes, in their order and within the budget.

Pure. `SessionMemory.context` says what the session has, `build_payload` makes messages of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING

from compaction.budget.fit import LeftOut, PartCandidates, fit_parts
from compaction.budget.rolling import EvictedTurns, RollingPolicy

# Named here too: whoever builds a payload finds all of it in one place.
from compaction.context.turn_text import FORGOTTEN as FORGOTTEN
from compaction.context.turn_text import MAX_TURN_CHARS as MAX_TURN_CHARS
from compaction.context.turn_text import TurnPartCache, turn_part
from compaction.context.turn_text import format_clock_time as format_clock_time
from compaction.context.turn_text import format_turn as format_turn
from compaction.language.wording import plain
from compaction.model import Mode, Seq, Turn
from compaction.payload import PartKind, PayloadPart, make_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from compaction.model import Note, RenderedSummary

# Under pressure these newest turns are the last to go.
NEWEST_TURNS = 10


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a session has to say for itself at one moment. Times: UTC epoch seconds.

    `summary` stands for turns 0 to `cursor - 1`, said between `summary_started_at` and `summary_ended_at`, and is
    None before the first landing. `window`: turns from the cursor on, without `current`; in the rolling mode,
    without what is `evicted` already.
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
    evicted: EvictedTurns | None = None
    rolling: RollingPolicy = field(default_factory=RollingPolicy)
    # Where the turns that were told before are kept; it changes nothing about what is told.
    turn_parts: TurnPartCache = field(default_factory=TurnPartCache, compare=False, repr=False)


def build_payload(
    context: SessionContext,
    *,
    system: Sequence[str] = (),
    recall: Sequence[PayloadPart] = (),
    participants: Sequence[PayloadPart] = (),
    active: Sequence[PayloadPart] = (),
    continuity: Sequence[PayloadPart] = (),
    stale: Sequence[PayloadPart] = (),
    condensed: Sequence[PayloadPart] = (),
    max_input_tokens: int | None = None,
    zone: tzinfo = UTC,
    searchable: bool = False,
    count: Callable[[str], int] | None = None,
) -> tuple[PayloadPart, ...]:
    """Return the messages for one model call, in order, costing at most `max_input_tokens` (the context's own
    unless given).

    `system`: prompts and tool rules, one message each, never cut. `recall`: quotes found by memory search.
    `participants`: what is known of the people present (compaction.memory.people). `active`: the file or frame that
    is being talked about. `continuity`: what was said in older conversations, `stale`: what tools answered long ago,
    oldest first. `condensed`: what stands beside the summary for turns without room (`left_out_turns`). `zone`: whose
    clock the times are told in. `searchable`: the model has memory search, so an eviction note points there.
    `count`: what counts a text's tokens; the guess unless given.
    Raises ContextOverflowError when not even the system prompts and the current turn fit. Deterministic.
    """
    limit = context.max_input_tokens if max_input_tokens is None else max_input_tokens
    tell = _Teller(context, zone, searchable=searchable, count=count)
    return fit_parts(
        PartCandidates(
            fixed=tuple(make_part("system", PartKind.SYSTEM, text, count=count) for text in system),
            continuity=tuple(continuity),
            summary=(*tell.summary(), *condensed),
            participants=tuple(participants),
            turns=tuple(context.turn_parts.part(turn, zone, count) for turn in context.window),
            stale=tuple(stale),
            notes=tuple(tell.note(note) for note in context.live_notes),
            recall=tuple(recall),
            active=tuple(active),
            current=() if context.current is None else (turn_part(context.current, PartKind.CURRENT, zone, count),),
        ),
        max_input_tokens=limit,
        newest=NEWEST_TURNS,
        describe=tell.left_out,
        rolling=context.rolling if context.mode is Mode.ROLLING else None,
    )


def left_out_turns(context: SessionContext, payload: Sequence[PayloadPart]) -> tuple[Turn, ...]:
    """Return the turns of the context's window that had no room in `payload`."""
    sent = {each.seq_from for each in payload if each.kind is PartKind.TURN}
    return tuple(turn for turn in context.window if turn.seq not in sent)


def evict_unsent_turns(context: SessionContext, payload: Sequence[PayloadPart]) -> EvictedTurns | None:
    """Return what a rolling session has evicted once `payload`, made of `context`, is sent."""
    gone = left_out_turns(context, payload)
    if not gone:
        return context.evicted
    now = summarize_eviction(gone)
    return now if context.evicted is None else context.evicted.plus(now)


def summarize_eviction(turns: Sequence[Turn]) -> EvictedTurns:
    """Return what these turns, one after the other, come to as an eviction, their tokens guessed."""
    return _evicted([turn_part(turn, PartKind.TURN) for turn in turns])


class _Teller:
    """Makes the parts of one payload: the session's words as a model reads them, each with its cost."""

    def __init__(
        self,
        context: SessionContext,
        zone: tzinfo,
        *,
        searchable: bool = False,
        count: Callable[[str], int] | None = None,
    ) -> None:
        self._context = context
        self._zone = zone
        self._searchable = searchable
        self._count = count

    def summary(self) -> tuple[PayloadPart, ...]:
        """Return the summary with the range it stands for, or nothing before there is one."""
        context = self._context
        if context.summary is None:
            return ()
        text = f"Earlier in this session: {context.summary.text}"
        if context.cursor == 0:
            # Notes alone can be folded before any turn is; they stand for no turn.
            return (make_part("system", PartKind.SUMMARY, text, count=self._count),)
        said = ""
        if context.summary_started_at is not None and context.summary_ended_at is not None:
            said = f", said {self._times(context.summary_started_at, context.summary_ended_at)}"
        return (
            make_part(
                "system",
                PartKind.SUMMARY,
                f"{text}\n(turns 0 to {context.cursor - 1}{said})",
                seq_from=Seq(0),
                seq_to=Seq(context.cursor - 1),
                timestamp=context.summary_started_at,
                count=self._count,
            ),
        )

    def note(self, note: Note) -> PayloadPart:
        """Return one note of a shared screen."""
        text = f"[{format_clock_time(note.at, self._zone)}] On {plain(note.who)}'s screen: {plain(note.what)}"
        return make_part("system", PartKind.NOTE, text, timestamp=note.at, refs=(note.id,), count=self._count)

    def left_out(self, cut: LeftOut[PayloadPart]) -> PayloadPart | None:
        """Return the one note for everything that is not sent, now and before; None when that is nothing."""
        context = self._context
        if context.mode is Mode.ROLLING and not context.rolling.eviction_note:
            return None
        evicted = context.evicted
        if cut.turns:
            now = _evicted(cut.turns)
            evicted = now if evicted is None else evicted.plus(now)
        told: list[str] = []
        if evicted is not None:
            told.append(
                f"turns {evicted.start} to {evicted.until - 1} ({evicted.count} messages, "
                f"{evicted.tokens} tokens, said {self._times(evicted.first_at, evicted.last_at)})"
            )
        if cut.summary:
            told.append(f"the summary of what was before turn {context.cursor}")
        told += [
            f"{len(parts)} {what}"
            for parts, what in (
                (cut.participants, "memories of the people here"),
                (cut.notes, "notes of what is on screen"),
                (cut.recall, "recalled quotes"),
                (cut.active, "of what is being looked at"),
                (cut.continuity, "older conversations"),
                (cut.stale, "old outputs of tools"),
            )
            if parts
        ]
        if not told:
            return None
        hint = " All of it is stored; memory_search finds it." if self._searchable else ""
        stands_for = [(each.seq_from, each.seq_to, each.timestamp) for each in cut.summary if each.seq_from is not None]
        if evicted is not None:
            stands_for.append((evicted.start, Seq(evicted.until - 1), evicted.first_at))
        return make_part(
            "system",
            PartKind.EVICTION_NOTE,
            f"[Context rolled: left out for want of room: {'; '.join(told)}.{hint}]",
            seq_from=stands_for[0][0] if stands_for else None,
            seq_to=stands_for[-1][1] if stands_for else None,
            timestamp=stands_for[0][2] if stands_for else None,
            count=self._count,
        )

    def _times(self, first: float, last: float) -> str:
        return f"from {format_clock_time(first, self._zone)} to {format_clock_time(last, self._zone)}"


def _evicted(turns: Sequence[PayloadPart]) -> EvictedTurns:
    """Return what the parts of turns, one after the other, come to."""
    first, last = turns[0], turns[-1]
    assert first.seq_from is not None, "the part of a turn knows which"
    assert last.seq_to is not None, "the part of a turn knows which"
    return EvictedTurns(
        start=first.seq_from,
        until=Seq(last.seq_to + 1),
        tokens=sum(each.tokens for each in turns),
        first_at=first.timestamp or 0.0,
        last_at=last.timestamp or 0.0,
    )
