"""The parts of what a model is sent, and the proof of what they cover.

`coverage` reads back from the parts themselves which turns they hold, so that a hole could not hide behind the
code that made them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from compaction.budget.tokens import MESSAGE_OVERHEAD_TOKENS, estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from compaction.model import Seq


class PartKind(StrEnum):
    """What a part of the payload is, in the order in which parts are sent."""

    SYSTEM = "system"
    CONTINUITY = "continuity"
    SUMMARY = "summary"
    PARTICIPANTS = "participants"
    EVICTION_NOTE = "eviction_note"
    TURN = "turn"
    TOOL = "tool"
    NOTE = "note"
    RECALL = "recall"
    ACTIVE = "active"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """One message for the model. It holds, or stands for, turns `seq_from <= seq <= seq_to` (None: no turns).

    `timestamp`: UTC epoch seconds of the first thing in it, where it has one. `refs`: what it was made of beyond
    turns, by id: notes, facts about people, what was recalled.
    """

    role: str
    kind: PartKind
    seq_from: Seq | None
    seq_to: Seq | None
    tokens: int
    content: str
    timestamp: float | None = None
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """Where each turn of a session is in one payload, as inclusive seq ranges. A turn counts once: as verbatim
    before summarised before evicted. `missing` is nowhere, which is a defect in every mode but `off`."""

    summarised: tuple[tuple[int, int], ...]
    verbatim: tuple[tuple[int, int], ...]
    evicted: tuple[tuple[int, int], ...]
    missing: tuple[tuple[int, int], ...]


def part(
    role: str,
    kind: PartKind,
    content: str,
    *,
    seq_from: Seq | None = None,
    seq_to: Seq | None = None,
    timestamp: float | None = None,
    refs: tuple[str, ...] = (),
    count: Callable[[str], int] | None = None,
) -> PayloadPart:
    """Return one message with its cost counted: by `count`, or guessed."""
    tokens = MESSAGE_OVERHEAD_TOKENS + (estimate_text_tokens if count is None else count)(content)
    return PayloadPart(role, kind, seq_from, seq_to, tokens, content, timestamp, refs)


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
    for each in payload:
        place = places.get(each.kind)
        if place is None or each.seq_from is None or each.seq_to is None:
            continue
        for seq in range(each.seq_from, each.seq_to + 1):
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
        for each in payload
        if each.kind in {PartKind.TURN, PartKind.CURRENT}
        for seq in (each.seq_from, each.seq_to)
        if seq is not None
    ]
    tokens: dict[str, int] = {}
    for each in payload:
        tokens[each.kind.value] = tokens.get(each.kind.value, 0) + each.tokens
    evicted = [
        [each.seq_from, each.seq_to]
        for each in payload
        if each.kind is PartKind.EVICTION_NOTE and each.seq_from is not None
    ]
    return {
        "seq_from": min(seqs, default=None),
        "seq_to": max(seqs, default=None),
        "summary_revision": summary_revision,
        "tokens": tokens,
        "evicted": evicted[0] if evicted else None,
    }


def _ranges(seqs: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return ascending numbers as inclusive ranges."""
    ranges: list[tuple[int, int]] = []
    for seq in seqs:
        if ranges and ranges[-1][1] == seq - 1:
            ranges[-1] = (ranges[-1][0], seq)
        else:
            ranges.append((seq, seq))
    return tuple(ranges)
