"""What a run showed, as far as promises are about it, and how words are looked for in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from rehearsal.backstage import ServersSeen
from rehearsal.wer import normalised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rehearsal.observation import ContextPart, Problem, TurnRecorded, UtteranceHeard
    from rehearsal.report import (
        BotTurnReport,
        CompactionReport,
        LatencyReport,
        StrayReport,
        UtteranceReport,
    )

# A small recogniser writes "half-pass six" for "half past six" and "9 busted" for "9 bus to", on one processor and
# not on the next. One word in three may be spelled as much alike as this, any longer word a little more so.
ALIKE = 0.6
LONG_ALIKE = 0.8
LONG_LETTERS = 5


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


def sounds_like(heard: str, words: str) -> bool:
    """Return whether a recogniser that was told the words could have written this: numbers as they are, in order."""
    wanted, written = normalised(words).split(), normalised(heard).split()
    return any(_alike(written[at : at + len(wanted)], wanted) for at in range(len(written) - len(wanted) + 1))


def _alike(written: Sequence[str], wanted: Sequence[str]) -> bool:
    """Compare word for word; both have the same count of them."""
    bent = 0
    for one, other in zip(written, wanted, strict=True):
        if one == other:
            continue
        alike = 0.0 if one[0].isdigit() or other[0].isdigit() else SequenceMatcher(None, one, other).ratio()
        if len(other) >= LONG_LETTERS and alike >= LONG_ALIKE:
            continue
        if alike < ALIKE:
            return False
        bent += 1
    return bent <= len(wanted) // 3


def where(part: ContextPart) -> str:
    return f"the {part.kind} part" + (f" of turn {part.seq_from}" if part.seq_from is not None else "")
