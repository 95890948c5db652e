"""Builds a payload: the messages that one model call sends, in order and within the token budget. Pure.

`SessionTimeline.context` returns the session's data as a `SessionContext`, and `build_payload` turns it into messages.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from compaction.budget.eviction_note import EvictedTurns, make_eviction_note
from compaction.budget.prompt import ContextConfig, build_final_prompt
from compaction.budget.trim import RollingEviction, TrimOptions
from compaction.clock_time import format_clock_time, format_span
from compaction.context.turn_text import turn_part
from compaction.memory.chapters import ASKED_TOKENS, PROMPT_TOKENS, Chapter, sentences_about, tell_chapters
from compaction.model import Mode, Note, Seq, Turn
from compaction.payload import PartKind, PayloadPart, data_part, make_part
from compaction.speaker_names import plain_name
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


CHAPTERS_HEAD = "Its chapters:"
ASKED_HEAD = "What was noted of what is asked now, oldest first:"
# Chapters get at most such a share of a prompt.
_CHAPTERS_SHARE = 8


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a session contributes to a payload at one moment. Times: UTC epoch seconds.

    `summary` covers turns 0 to `cursor - 1`, which were said between `summary_started_at` and `summary_ended_at`. All
    three are None before the first landing. `window`: the turns from the cursor on, without `current`. In the rolling
    mode the window does not contain evicted turns.
    """

    mode: Mode
    cursor: Seq
    summary: str | None
    summary_revision: int
    summary_started_at: float | None
    summary_ended_at: float | None
    window: tuple[Turn, ...]
    live_notes: tuple[Note, ...]
    current: Turn | None
    max_input_tokens: int
    evicted: EvictedTurns | None = None
    # Of the turns that `summary` covers.
    chapters: tuple[Chapter, ...] = ()


def build_payload(
    context: SessionContext,
    *,
    system: Sequence[str] = (),
    reply_prompts: Sequence[str] = (),
    recall: Sequence[PayloadPart] = (),
    participants: Sequence[PayloadPart] = (),
    excerpt: Sequence[PayloadPart] = (),
    exchanges: Mapping[int, Sequence[PayloadPart]] | None = None,
    max_input_tokens: int | None = None,
    options: TrimOptions | None = None,
    enforced: bool = True,
    zone: tzinfo = UTC,
    searchable: bool = False,
) -> tuple[PayloadPart, ...]:
    """Return the messages for one model call, in order, with at most `max_input_tokens` tokens (default: the context's
    limit).

    `system`: prompts and tool rules, one message each. `reply_prompts`: prompts about this reply. They stand right
    before the current turn: what precedes them is as it was in the last call, so servers need not read it again, and
    behind the turn small models obeyed them instead of answering it. `recall`: quotes found by memory search.
    `participants`: facts about the people present (`memory.people`). `excerpt`: stands for turns without room, beside
    the note. `exchanges`: calls of tools and their results, by the turn after which they stand. `options`: how to trim;
    the session's mode decides whether the window goes first. `enforced`: whether the limit holds. `zone`: the time zone
    of clock times. `searchable`: the model has memory search, so the eviction note mentions it. Raises
    ContextOverflowError if not even the system prompts and the current turn fit. Deterministic.
    """
    options = options or TrimOptions()
    is_rolling = context.mode is Mode.ROLLING
    options = replace(
        options,
        rolling=is_rolling,
        eviction_note=options.eviction_note or not is_rolling,
        answers_last=False,
        evicted=context.evicted,
        searchable=searchable,
        zone=zone,
    )
    limit = context.max_input_tokens if max_input_tokens is None else max_input_tokens
    count, exchanged = options.tool_outputs.count, exchanges or {}
    newest = context.current or next(reversed(context.window), None)
    now = None if newest is None else newest.started_at
    chapters = _chapter_parts(context, min(PROMPT_TOKENS, limit // _CHAPTERS_SHARE), options, now)
    messages = [
        *(make_part("system", PartKind.SYSTEM, text, count=count) for text in system),
        *_summary_parts(context, options, now),
        *chapters,
        *participants,
        *_eviction_notes(options, now),
    ]
    # What was seen stands where it was seen: a question about it is understood by what was said then.
    notes = deque(context.live_notes)
    for turn in context.window:
        while notes and notes[0].at < turn.started_at:
            messages.append(_note_part(notes.popleft(), options))
        messages.append(turn_part(turn, PartKind.TURN, zone, count))
        messages += exchanged.get(turn.seq, ())
    messages += [
        *(_note_part(note, options) for note in notes),
        *_asked_parts(context, chapters, limit, options, now),
        *recall,
        *(make_part("system", PartKind.SYSTEM, text, count=count) for text in reply_prompts),
    ]
    if context.current is not None:
        messages.append(turn_part(context.current, PartKind.CURRENT, zone, count))
        messages += exchanged.get(context.current.seq, ())
    # What stands for the turns without room is no part that could leave before them.
    config = ContextConfig(max(0, limit - sum(each.tokens for each in excerpt)), enabled=enforced, trim=options)
    fitted = build_final_prompt(messages, config).messages
    at = next((at for at, each in enumerate(fitted) if each.kind is PartKind.EVICTION_NOTE), 0)
    return (*fitted[:at], *excerpt, *fitted[at:])


def left_out_turns(context: SessionContext, payload: Sequence[PayloadPart]) -> tuple[Turn, ...]:
    """Return the turns of the context's window that are not in `payload`."""
    sent = {each.seq_from for each in payload if each.kind is PartKind.TURN}
    return tuple(turn for turn in context.window if turn.seq not in sent)


def eviction_of(gone: Sequence[Turn], kept: Sequence[Turn] = ()) -> RollingEviction[PayloadPart]:
    """Return the turns that leave a window and those that stay, with estimated tokens."""
    kept_parts, gone_parts = ([turn_part(turn, PartKind.TURN) for turn in turns] for turns in (kept, gone))
    return RollingEviction(tuple(kept_parts), tuple(gone_parts))


def summarize_eviction(turns: Sequence[Turn]) -> EvictedTurns:
    """Return these consecutive turns as one evicted range with estimated tokens."""
    first, last = turns[0], turns[-1]
    tokens = eviction_of(turns).evicted_tokens
    return EvictedTurns(first.seq, Seq(last.seq + 1), tokens, first.started_at, last.started_at)


def _summary_parts(context: SessionContext, options: TrimOptions, now: float | None) -> tuple[PayloadPart, ...]:
    """Return the summary with the range of turns that it covers, or nothing if there is no summary. `now`: the time of
    the newest turn.
    """
    count = options.tool_outputs.count
    if context.summary is None:
        return ()
    text = f"Earlier in this session: {inline(context.summary)}"
    if context.cursor == 0:
        # If only notes have been folded so far, the summary covers no turn.
        return (data_part(PartKind.SUMMARY, text, count=count),)
    said = ""
    if context.summary_started_at is not None and context.summary_ended_at is not None:
        said = f", said {format_span(context.summary_started_at, context.summary_ended_at, options.zone, now=now)}"
    return (
        data_part(
            PartKind.SUMMARY,
            f"{text}\n(turns 0 to {context.cursor - 1}{said})",
            seq_from=Seq(0),
            seq_to=Seq(context.cursor - 1),
            timestamp=context.summary_started_at,
            count=count,
        ),
    )


def chapter_lines(context: SessionContext, max_tokens: int, zone: tzinfo, now: float | None = None) -> tuple[str, ...]:
    """Return a line for each chapter, oldest first, in at most `max_tokens`; none if the summary tells of one alone.

    `now`: the time of the newest turn.
    """
    chapters = context.chapters if len(context.chapters) > 1 else ()

    lead = partial(_chapter_time, zone=zone, now=now)
    told = tell_chapters(chapters, max_tokens=max_tokens, beside=context.summary or "", lead=lead)
    return tuple(line for _, line in told)


def noted_lines(
    chapters: Sequence[Chapter],
    question: str,
    *,
    max_tokens: int,
    zone: tzinfo,
    beside: str = "",
    whole: bool = False,
    now: float | None = None,
) -> tuple[str, ...]:
    """Return a line for each chapter with what was noted there of a question, oldest first (see `sentences_about`).
    `now`: the time of the newest turn.
    """
    found = sentences_about(chapters, question, max_tokens=max_tokens, beside=beside, whole=whole)
    return tuple(
        _chapter_time(chapter, zone, now) + inline(" ".join(sentence for _, sentence in each))
        for chapter, each in groupby(found, key=itemgetter(0))
    )


def _chapter_time(chapter: Chapter, zone: tzinfo, now: float | None) -> str:
    return f"{format_span(chapter.started_at, chapter.ended_at, zone, now=now)}, "


def _chapter_parts(
    context: SessionContext, max_tokens: int, options: TrimOptions, now: float | None
) -> tuple[PayloadPart, ...]:
    text = "\n".join(chapter_lines(context, max_tokens, options.zone, now))
    count = options.tool_outputs.count
    return (data_part(PartKind.CHAPTER, f"{CHAPTERS_HEAD}\n{text}", count=count),) if text else ()


def _asked_parts(
    context: SessionContext, chapters: Sequence[PayloadPart], limit: int, options: TrimOptions, now: float | None
) -> tuple[PayloadPart, ...]:
    """Return what else the chapters tell of what the current turn asks. `chapters`: what is sent of them anyway. It
    stands behind the window, so that what precedes that is as it was in the last call.
    """
    if context.current is None or not chapters:
        return ()
    beside = "\n".join((context.summary or "", *(each.content for each in chapters)))
    max_tokens = min(ASKED_TOKENS, limit // _CHAPTERS_SHARE)
    lines = noted_lines(
        context.chapters, context.current.text, max_tokens=max_tokens, zone=options.zone, beside=beside, now=now
    )
    count = options.tool_outputs.count
    return (data_part(PartKind.CHAPTER, "\n".join((ASKED_HEAD, *lines)), count=count),) if lines else ()


def _note_part(note: Note, options: TrimOptions) -> PayloadPart:
    """Return a note with every sign of it, as in code: the marks of data keep it apart."""
    at, why = format_clock_time(note.at, options.zone), f" ({inline(note.why)})" if note.why else ""
    return data_part(
        PartKind.NOTE,
        f"[{at}] On {plain_name(note.who)}'s screen{why}: {inline(note.what)}",
        timestamp=note.at,
        refs=(note.id,),
        count=options.tool_outputs.count,
    )


def _eviction_notes(options: TrimOptions, now: float | None) -> tuple[PayloadPart, ...]:
    """Return the note about the turns that were evicted before, if there are any."""
    if options.evicted is None or not options.eviction_note:
        return ()
    note = make_eviction_note(
        (),
        evicted=options.evicted,
        now=now,
        zone=options.zone,
        searchable=options.searchable,
        count=options.tool_outputs.count,
    )
    return (note,)
