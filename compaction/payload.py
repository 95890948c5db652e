"""The parts of a payload (the messages that one model call sends), and which turns they cover.

`coverage` reads the turns from the finished parts, so it also finds turns that the building code left out by mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from compaction.tokens import estimate_text_tokens, message_tokens
from compaction.untrusted_text import mark_as_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from compaction.model import Seq


class PartKind(StrEnum):
    """What a part of the payload contains, in the order in which parts are sent. Notes stand among the turns."""

    SYSTEM = "system"
    CONTINUITY = "continuity"
    SUMMARY = "summary"
    CHAPTER = "chapter"
    PARTICIPANTS = "participants"
    EVICTION_NOTE = "eviction_note"
    TURN = "turn"
    TOOL = "tool"
    NOTE = "note"
    RECALL = "recall"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class MessageToolCall:
    """A tool call that a model asked for. `arguments`: JSON, as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """One message for the model. It contains or represents turns `seq_from <= seq <= seq_to` (None: no turns).

    `timestamp`: UTC epoch seconds of the first thing in it, if any. `refs`: ids of its other sources: notes, facts
    about people, recalled passages. `tool_calls`: the calls that an assistant message asks for. `tool_call_id`, `name`:
    the call that a tool's message answers, and the tool.
    """

    role: str
    kind: PartKind
    seq_from: Seq | None
    seq_to: Seq | None
    tokens: int
    content: str
    timestamp: float | None = None
    refs: tuple[str, ...] = ()
    tool_calls: tuple[MessageToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """Where each turn of a session is in one payload, as inclusive seq ranges.

    Each turn is counted once: as verbatim if possible, else as summarised, else as evicted. A `missing` turn is a bug
    in every mode except `off`.
    """

    summarised: tuple[tuple[int, int], ...]
    verbatim: tuple[tuple[int, int], ...]
    evicted: tuple[tuple[int, int], ...]
    missing: tuple[tuple[int, int], ...]


def make_part(
    role: str,
    kind: PartKind,
    content: str,
    *,
    seq_from: Seq | None = None,
    seq_to: Seq | None = None,
    timestamp: float | None = None,
    refs: tuple[str, ...] = (),
    tool_calls: tuple[MessageToolCall, ...] = (),
    tool_call_id: str | None = None,
    name: str | None = None,
    count: Callable[[str], int] = estimate_text_tokens,
) -> PayloadPart:
    """Return one message with its tokens, counted by `count`. The other arguments: see `PayloadPart`."""
    part = PayloadPart(role, kind, seq_from, seq_to, 0, content, timestamp, refs, tool_calls, tool_call_id, name)
    return recount(part, count)


def recount(part: PayloadPart, count: Callable[[str], int]) -> PayloadPart:
    """Return the part with its tokens counted by `count`."""
    return replace(part, tokens=message_tokens(part, count))


def data_part(
    kind: PartKind,
    text: str,
    *,
    seq_from: Seq | None = None,
    seq_to: Seq | None = None,
    timestamp: float | None = None,
    refs: tuple[str, ...] = (),
    count: Callable[[str], int] = estimate_text_tokens,
) -> PayloadPart:
    """Return a part with text that came from people, screens or files: a user's message, marked as data."""
    return make_part(
        "user",
        kind,
        mark_as_data(kind.value, text),
        seq_from=seq_from,
        seq_to=seq_to,
        timestamp=timestamp,
        refs=refs,
        count=count,
    )


def coverage(payload: Iterable[PayloadPart], total_turns: int) -> Coverage:
    """Return where each of the session's turns is in the payload."""
    held: dict[int, str] = {}
    # Where a turn is in several, the last of these counts.
    places = {
        PartKind.EVICTION_NOTE: "evicted",
        PartKind.SUMMARY: "summarised",
        PartKind.TURN: "verbatim",
        PartKind.CURRENT: "verbatim",
    }
    parts = list(payload)
    for kind, place in places.items():
        for each in parts:
            if each.kind is kind and each.seq_from is not None and each.seq_to is not None:
                held.update(dict.fromkeys(range(each.seq_from, each.seq_to + 1), place))
    by_place: dict[str, list[int]] = {"verbatim": [], "summarised": [], "evicted": [], "missing": []}
    for seq in range(total_turns):
        by_place[held.get(seq, "missing")].append(seq)
    return Coverage(**{place: _ranges(seqs) for place, seqs in by_place.items()})


def context_built_fields(
    payload: Sequence[PayloadPart],
    *,
    summary_revision: int,
    cursor: int | None = None,
    max_input_tokens: int | None = None,
    answer_to: int | None = None,
) -> dict[str, object]:
    """Return the fields of the `model_context_built` log line. No field contains what people said.

    `tokens`: by kind of part. `evicted`: the inclusive range of the eviction note. `note_ids`, `participants`,
    `recall`: ids of the sources of those parts. `answer_to`: the turn that is answered, if the payload has no current
    turn.
    """
    seqs = [
        seq
        for each in payload
        if each.kind in {PartKind.TURN, PartKind.CURRENT}
        for seq in (each.seq_from, each.seq_to)
        if seq is not None
    ]
    tokens = tokens_by_kind(payload)
    return {
        "seq_from": min(seqs, default=None),
        "seq_to": max(seqs, default=None),
        "answer_to": next((each.seq_from for each in payload if each.kind is PartKind.CURRENT), answer_to),
        "cursor": cursor,
        "summary_revision": summary_revision,
        "tokens": tokens,
        "total_tokens": sum(tokens.values()),
        "max_input_tokens": max_input_tokens,
        "evicted": evicted_range(payload),
        "note_ids": _refs(payload, PartKind.NOTE),
        "participants": _refs(payload, PartKind.PARTICIPANTS),
        "recall": _refs(payload, PartKind.RECALL),
    }


def tokens_by_kind(payload: Iterable[PayloadPart]) -> dict[str, int]:
    """Return the tokens of the parts of each kind."""
    tokens: dict[str, int] = {}
    for each in payload:
        tokens[each.kind.value] = tokens.get(each.kind.value, 0) + each.tokens
    return tokens


def evicted_range(payload: Iterable[PayloadPart]) -> tuple[int, int] | None:
    """Return the inclusive range of turns that the eviction note stands for; None if there is no such note."""
    for each in payload:
        if each.kind is PartKind.EVICTION_NOTE and each.seq_from is not None and each.seq_to is not None:
            return (each.seq_from, each.seq_to)
    return None


def _refs(payload: Iterable[PayloadPart], kind: PartKind) -> list[str]:
    return [ref for each in payload if each.kind is kind for ref in each.refs]


def _ranges(seqs: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return ascending numbers as a list of inclusive ranges."""
    ranges: list[tuple[int, int]] = []
    for seq in seqs:
        if ranges and ranges[-1][1] == seq - 1:
            ranges[-1] = (ranges[-1][0], seq)
        else:
            ranges.append((seq, seq))
    return tuple(ranges)
