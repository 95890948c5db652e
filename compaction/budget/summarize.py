"""Summarises turns that were left out of a prompt, by quotes. Source: spec 4, phase 3."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from compaction.model import Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind
from compaction.summary.extractive import quote_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.payload import PayloadPart

MAX_SUMMARY_CHARS = 1_200
_HEADING = re.compile(r"^(?:\[\d{1,2}:\d{2}\] )?(?:(?P<speaker>[^:\n\[\]]{1,40}): )?(?P<text>.*)$", re.DOTALL)


class ContextSummary(NamedTuple):
    """Quotes of messages; empty if nothing in them is worth keeping. `original_tokens`: of the messages."""

    summary: str
    original_tokens: int


def summarize_context(messages: Sequence[PayloadPart], *, max_summary_chars: int = MAX_SUMMARY_CHARS) -> ContextSummary:
    """Return the best sentences of the turns among the messages, with their speakers. Deterministic.

    No model writes it: a reply can't wait for a second one, and what leaves the window is folded by a model anyway.
    """
    turns: list[Turn] = []
    for message in messages:
        if message.kind in {PartKind.TURN, PartKind.CURRENT} and (parts := _parts(message)):
            at = message.timestamp or 0.0
            kind = TurnKind.ASSISTANT if message.role == "assistant" else TurnKind.SPEECH
            turns.append(Turn(Seq(len(turns)), kind, at, at, parts))
    tokens = sum(message.tokens for message in messages)
    return ContextSummary(quote_turns(tuple(turns), max_chars=max_summary_chars), tokens)


def _parts(message: PayloadPart) -> tuple[TurnPart, ...]:
    """Split a message into the parts of its speakers. Each line of a message has a time and a speaker
    (`format_turn`).
    """
    parts: list[TurnPart] = []
    for line in message.content.splitlines():
        said = _HEADING.match(line)
        if said is None or not said["text"].strip():
            continue
        speaker = said["speaker"] or message.name or message.role.capitalize()
        parts.append(TurnPart(speaker, speaker, said["text"]))
    return tuple(parts)
