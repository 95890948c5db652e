"""What a run showed, as far as promises are about it, and how words are looked for in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rehearsal.backstage import ServersSeen
from rehearsal.wer import normalised

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.observation import ContextPart, Problem, TurnRecorded, UtteranceHeard
    from rehearsal.report import (
        BotTurnReport,
        CompactionReport,
        LatencyReport,
        StrayReport,
        UtteranceReport,
    )


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run showed, as far as promises are about it."""

    utterances: tuple[UtteranceReport, ...]
    strays: tuple[StrayReport, ...]
    bot_turns: tuple[BotTurnReport, ...]
    compactions: tuple[CompactionReport, ...]
    latency: LatencyReport
    wer: float | None
    packets: Mapping[str, int]
    messages: tuple[str, ...]
    problems: tuple[Problem, ...]
    turns: tuple[TurnRecorded, ...]
    heard: tuple[UtteranceHeard, ...]
    stored_turns: int = 0
    # When steps with an id began and ended, in seconds since the live start.
    marks: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # What turns call people, by key, and the bot, by name.
    speaker_ids: Mapping[str, str] = field(default_factory=dict)
    servers: ServersSeen = field(default_factory=ServersSeen)


def holds(text: str, words: str) -> bool:
    """Return whether the words stand in the text, whole and in this order, however they are written."""
    return f" {normalised(words)} " in f" {normalised(text)} "


def where(part: ContextPart) -> str:
    return f"the {part.kind} part" + (f" of turn {part.seq_from}" if part.seq_from is not None else "")
