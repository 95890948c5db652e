"""Writes the note that stands for everything that a prompt leaves out. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.clock_time import format_span
from compaction.model import Seq
from compaction.payload import PartKind, PayloadPart, make_part, recount

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

# How the other kinds of parts are named, in this order.
_NAMES = {
    PartKind.SUMMARY: "summary of what was before",
    PartKind.CHAPTER: "list of its chapters",
    PartKind.PARTICIPANTS: "memories of the people here",
    PartKind.NOTE: "notes of what is on screen",
    PartKind.RECALL: "recalled quotes",
    PartKind.CONTINUITY: "older conversations",
    PartKind.TOOL: "calls of tools and their results",
    PartKind.SYSTEM: "instructions",
}


@dataclass(frozen=True, slots=True)
class EvictedTurns:
    """The turns that a session has evicted so far (`start <= seq < until`), with their token count.

    `first_at`, `last_at`: when the first and the last of these turns were said, in UTC epoch seconds.
    """

    start: Seq
    until: Seq
    tokens: int
    first_at: float
    last_at: float

    @property
    def count(self) -> int:
        return self.until - self.start

    def plus(self, later: EvictedTurns) -> EvictedTurns:
        """Return the combined range of this and `later`, which must follow directly."""
        return EvictedTurns(self.start, later.until, self.tokens + later.tokens, self.first_at, later.last_at)


def make_eviction_note(
    dropped: Sequence[PayloadPart],
    *,
    evicted: EvictedTurns | None = None,
    now: float | None,
    zone: tzinfo,
    searchable: bool,
    count: Callable[[str], int],
) -> PayloadPart:
    """Return the note about the parts that are left out now, and the turns that were `evicted` before.

    It has the range of all turns for which it stands. `now`: the time of the newest message, in UTC epoch seconds; if
    that is another day, the note has dates.
    """
    turns = [part for part in dropped if part.kind is PartKind.TURN]
    listed: list[str] = []
    if turns or evicted is not None:
        before = 0 if evicted is None else evicted.count
        tokens = sum(part.tokens for part in turns) + (0 if evicted is None else evicted.tokens)
        listed.append(f"{len(turns) + before} messages evicted" + f" ({tokens} tokens)" * (tokens > 0))
        if (span := _seq_span(turns, evicted)) is not None:
            listed.append(f"turns {span[0]} to {span[1]}")
        if times := [each.timestamp for each in turns if each.timestamp is not None]:
            first, last = (min(times) if evicted is None else evicted.first_at), max(times)
            listed.append(f"said {format_span(first, last, zone, now=now)}")
        elif evicted is not None:
            listed.append(f"said {format_span(evicted.first_at, evicted.last_at, zone, now=now)}")
    kinds = Counter(part.kind for part in dropped)
    others = [
        name if kind in {PartKind.SUMMARY, PartKind.CHAPTER} else f"{kinds[kind]} {name}"
        for kind, name in _NAMES.items()
        if kinds[kind]
    ]
    sentences = [", ".join(listed)] if listed else []
    if others:
        sentences.append(f"left out for want of room: {', '.join(others)}")
    hint = " Full transcript searchable via memory_search." if searchable else ""
    summaries = [part for part in dropped if part.kind is PartKind.SUMMARY]
    whole = _seq_span([*summaries, *turns], evicted)
    return make_part(
        "system",
        PartKind.EVICTION_NOTE,
        f"[Context rolled: {'; '.join(sentences)}.{hint}]",
        seq_from=None if whole is None else whole[0],
        seq_to=None if whole is None else whole[1],
        timestamp=min((part.timestamp for part in dropped if part.timestamp is not None), default=None),
        count=count,
    )


def join_notes(first: PayloadPart, second: PayloadPart, count: Callable[[str], int]) -> PayloadPart:
    """Return one note for both, in the place of the first."""
    span = _seq_span([first, second], None)
    joined = replace(
        first,
        content=f"{first.content}\n{second.content}",
        seq_from=None if span is None else span[0],
        seq_to=None if span is None else span[1],
    )
    return recount(joined, count)


def _seq_span(parts: Sequence[PayloadPart], evicted: EvictedTurns | None) -> tuple[Seq, Seq] | None:
    """Return the first and the last turn for which these parts, and the turns that were evicted before, stand."""
    firsts = [part.seq_from for part in parts if part.seq_from is not None]
    lasts = [part.seq_to for part in parts if part.seq_to is not None]
    if evicted is not None:
        firsts.append(evicted.start)
        lasts.append(Seq(evicted.until - 1))
    return (min(firsts), max(lasts)) if firsts and lasts else None
