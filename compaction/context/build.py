"""Builds a payload: the messages that one model call sends, in order and within the token budget. Pure.

`SessionMemory.context` returns the session's data as a `SessionContext`, and `build_payload` turns it into messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from compaction.budget.fit import LeftOut, PartCandidates, fit_parts
from compaction.budget.rolling import EvictedTurns, RollingPolicy
from compaction.budget.trim import PRESERVE_RECENT_TURNS
from compaction.clock_time import format_clock_time
from compaction.context.turn_text import TurnPartCache, turn_part
from compaction.language.text import plain
from compaction.model import Mode, Seq, Turn
from compaction.payload import PartKind, PayloadPart, data_part, make_part
from compaction.speaker_names import plain_name
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from compaction.model import Note, RenderedSummary


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a session contributes to a payload at one moment. Times: UTC epoch seconds.

    `summary` covers turns 0 to `cursor - 1`, which were said between `summary_started_at` and `summary_ended_at`. All
    three are None before the first landing. `window`: the turns from the cursor on, without `current`. In the rolling
    mode the window does not contain evicted turns.
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
    # A cache of parts that were made from turns before. It does not change the payload.
    turn_parts: TurnPartCache = field(default_factory=TurnPartCache, compare=False, repr=False)

    def utc_offset_s(self, zone: tzinfo) -> float | None:
        """Return by how many seconds `zone` was ahead of UTC at the newest turn, or None if there is none."""
        newest = self.current or (self.window[-1] if self.window else None)
        offset = None if newest is None else datetime.fromtimestamp(newest.started_at, zone).utcoffset()
        return None if offset is None else offset.total_seconds()


def build_payload(
    context: SessionContext,
    *,
    system: Sequence[str] = (),
    reply_prompts: Sequence[str] = (),
    recall: Sequence[PayloadPart] = (),
    participants: Sequence[PayloadPart] = (),
    continuity: Sequence[PayloadPart] = (),
    condensed: Sequence[PayloadPart] = (),
    newest: int = PRESERVE_RECENT_TURNS,
    max_input_tokens: int | None = None,
    zone: tzinfo = UTC,
    searchable: bool = False,
    count: Callable[[str], int] | None = None,
) -> tuple[PayloadPart, ...]:
    """Return the messages for one model call, in order, with at most `max_input_tokens` tokens (default: the context's
    limit).

    `system`: prompts and tool rules, one message each, never left out. `reply_prompts`: prompts about this reply. They
    stand right before the current turn: what precedes them is as it was in the last call, so servers need not read it
    again, and behind the turn small models obeyed them instead of answering it. `recall`: quotes found by memory
    search. `participants`: facts about the people present (`memory.people`). `continuity`: what was said in older
    conversations. `condensed`: a summary of the turns that did not fit (`left_out_turns`). `newest`: how many of the
    newest turns are left out last. `zone`: the time zone of clock times. `searchable`: the model has memory search, so
    the eviction note mentions it. `count`: counts the tokens of a text; by default tokens are
    estimated. Raises ContextOverflowError if not even the system prompts and the current turn fit. Deterministic.
    """
    limit = context.max_input_tokens if max_input_tokens is None else max_input_tokens
    parts = _SessionParts(context, zone, searchable=searchable, count=count)
    return fit_parts(
        PartCandidates(
            fixed=tuple(make_part("system", PartKind.SYSTEM, text, count=count) for text in system),
            continuity=tuple(continuity),
            summary=(*parts.summary(), *condensed),
            participants=tuple(participants),
            turns=tuple(context.turn_parts.part(turn, zone, count) for turn in context.window),
            notes=tuple(parts.note(note) for note in context.live_notes),
            recall=tuple(recall),
            reply_prompts=tuple(make_part("system", PartKind.SYSTEM, text, count=count) for text in reply_prompts),
            current=() if context.current is None else (turn_part(context.current, PartKind.CURRENT, zone, count),),
        ),
        max_input_tokens=limit,
        newest=newest,
        describe=parts.eviction_note,
        rolling=context.rolling if context.mode is Mode.ROLLING else None,
    )


def left_out_turns(context: SessionContext, payload: Sequence[PayloadPart]) -> tuple[Turn, ...]:
    """Return the turns of the context's window that are not in `payload`."""
    sent = {each.seq_from for each in payload if each.kind is PartKind.TURN}
    return tuple(turn for turn in context.window if turn.seq not in sent)


def evict_unsent_turns(context: SessionContext, payload: Sequence[PayloadPart]) -> EvictedTurns | None:
    """Return all turns that a rolling session has evicted once `payload` is sent. `payload` was built from
    `context`.
    """
    gone = left_out_turns(context, payload)
    if not gone:
        return context.evicted
    now = summarize_eviction(gone)
    return now if context.evicted is None else context.evicted.plus(now)


def summarize_eviction(turns: Sequence[Turn]) -> EvictedTurns:
    """Return these consecutive turns as one evicted range with estimated tokens."""
    return _evicted([turn_part(turn, PartKind.TURN) for turn in turns])


class _SessionParts:
    """Makes the parts of a payload that come from the session: summary, notes and eviction note."""

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
        """Return the summary with the range of turns that it covers, or nothing if there is no summary."""
        context = self._context
        if context.summary is None:
            return ()
        text = f"Earlier in this session: {context.summary.text}"
        if context.cursor == 0:
            # If only notes have been folded so far, the summary covers no turn.
            return (data_part(PartKind.SUMMARY, text, count=self._count),)
        said = ""
        if context.summary_started_at is not None and context.summary_ended_at is not None:
            said = f", said {self._times(context.summary_started_at, context.summary_ended_at)}"
        return (
            data_part(
                PartKind.SUMMARY,
                f"{text}\n(turns 0 to {context.cursor - 1}{said})",
                seq_from=Seq(0),
                seq_to=Seq(context.cursor - 1),
                timestamp=context.summary_started_at,
                count=self._count,
            ),
        )

    def note(self, note: Note) -> PayloadPart:
        text = (
            f"[{format_clock_time(note.at, self._zone)}] On {plain_name(note.who)}'s screen: {inline(plain(note.what))}"
        )
        return data_part(PartKind.NOTE, text, timestamp=note.at, refs=(note.id,), count=self._count)

    def eviction_note(self, cut: LeftOut[PayloadPart]) -> PayloadPart | None:
        """Return the note about everything that is left out of this call or was evicted earlier, or None if there is
        nothing.
        """
        context = self._context
        if context.mode is Mode.ROLLING and not context.rolling.eviction_note:
            return None
        evicted = context.evicted
        if cut.turns:
            now = _evicted(cut.turns)
            evicted = now if evicted is None else evicted.plus(now)
        listed: list[str] = []
        if evicted is not None:
            listed.append(
                f"turns {evicted.start} to {evicted.until - 1} ({evicted.count} messages, "
                f"{evicted.tokens} tokens, said {self._times(evicted.first_at, evicted.last_at)})"
            )
        if cut.summary:
            listed.append(f"the summary of what was before turn {context.cursor}")
        listed += [
            f"{len(parts)} {what}"
            for parts, what in (
                (cut.participants, "memories of the people here"),
                (cut.notes, "notes of what is on screen"),
                (cut.recall, "recalled quotes"),
                (cut.continuity, "older conversations"),
            )
            if parts
        ]
        if not listed:
            return None
        hint = " All of it is stored; memory_search finds it." if self._searchable else ""
        stands_for = [(each.seq_from, each.seq_to, each.timestamp) for each in cut.summary if each.seq_from is not None]
        if evicted is not None:
            stands_for.append((evicted.start, Seq(evicted.until - 1), evicted.first_at))
        return make_part(
            "system",
            PartKind.EVICTION_NOTE,
            f"[Context rolled: left out for want of room: {'; '.join(listed)}.{hint}]",
            seq_from=stands_for[0][0] if stands_for else None,
            seq_to=stands_for[-1][1] if stands_for else None,
            timestamp=stands_for[0][2] if stands_for else None,
            count=self._count,
        )

    def _times(self, first: float, last: float) -> str:
        return f"from {format_clock_time(first, self._zone)} to {format_clock_time(last, self._zone)}"


def _evicted(turns: Sequence[PayloadPart]) -> EvictedTurns:
    """Return these consecutive turn parts as one evicted range."""
    first, last = turns[0], turns[-1]
    assert first.seq_from is not None, "the part of a turn has its seq"
    assert last.seq_to is not None, "the part of a turn has its seq"
    return EvictedTurns(
        start=first.seq_from,
        until=Seq(last.seq_to + 1),
        tokens=sum(each.tokens for each in turns),
        first_at=first.timestamp or 0.0,
        last_at=last.timestamp or 0.0,
    )
