"""Formats turns for a model and makes payload parts of them."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from compaction.clock_time import format_clock_time
from compaction.language.text import fair_share, plain
from compaction.model import Turn, TurnKind
from compaction.payload import PartKind, PayloadPart, make_part
from compaction.speaker_names import plain_name
from compaction.tokens import estimate_text_tokens
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Callable


# Spec 1, 'What the LLM sees today', allows 1,200 characters per turn.
MAX_TURN_CHARS = 1_200
FORGOTTEN = "(forgotten at somebody's wish)"


def format_turn(
    turn: Turn, zone: tzinfo = UTC, *, max_chars: int | None = MAX_TURN_CHARS, labelled: bool = True
) -> str:
    """Return a turn as a model reads it: `[21:04] Ada: …`, one line per speaker, at most `max_chars` characters (None:
    however long it is). Without labels there are the words alone.

    In a longer turn the longest lines are cut, and a mark at the end names the turn to recall for the full text.
    """
    head = f"[{format_clock_time(turn.started_at, zone)}] " if labelled else ""
    if turn.tombstone:
        return f"{head}{FORGOTTEN}"
    texts = [inline(plain(part.text)) for part in turn.parts]
    named = zip(turn.parts, texts, strict=True)
    lines = [_line(turn.kind, plain_name(part.speaker), text) for part, text in named] if labelled else texts
    whole = head + "\n".join(lines)
    if max_chars is None or len(whole) <= max_chars:
        return whole
    mark = f" … [cut; turn {turn.seq} has all of it]"
    room = max_chars - len(head) - len(mark) - (len(lines) - 1)
    share = fair_share(map(len, lines), room)
    return head + "\n".join(line[:share].rstrip() for line in lines) + mark


def _line(kind: TurnKind, speaker: str, text: str) -> str:
    if kind in {TurnKind.MEMBERSHIP, TurnKind.EFFECT}:
        return f"({text})" if text.startswith(speaker) else f"({speaker} {text})"
    return f"{speaker} (typed): {text}" if kind is TurnKind.TYPED else f"{speaker}: {text}"


def turn_part(
    turn: Turn, kind: PartKind, zone: tzinfo = UTC, count: Callable[[str], int] = estimate_text_tokens
) -> PayloadPart:
    """Return a turn as a message. A model writes as its own turns look, so they have neither time nor name in front."""
    own = turn.kind is TurnKind.ASSISTANT
    role, text = "assistant" if own else "user", format_turn(turn, zone, labelled=not own)
    return make_part(role, kind, text, seq_from=turn.seq, seq_to=turn.seq, timestamp=turn.started_at, count=count)
