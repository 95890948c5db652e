"""What a run showed, as far as promises are about it, and how words are looked for in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from rehearsal.judge.wer import normalised
from rehearsal.runner.backstage import ServersSeen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rehearsal.report.report import (
        BotTurnReport,
        CompactionReport,
        LatencyReport,
        StrayReport,
        UtteranceReport,
    )
    from rehearsal.runner.observation import ContextPart, Problem, TurnRecorded, UtteranceHeard

# A small recogniser writes "half-pass six" or "half-passix" for "half past six", and "9 busted" for "9 bus to". One
# word in three may be spelled as much alike as this, a longer word a little more so; and the letters of the whole
# phrase, with its words cut otherwise but none left out, as much as that.
ALIKE = 0.6
LONG_ALIKE = 0.8
LONG_LETTERS = 5
LETTERS_ALIKE = 0.82
LETTERS_LEFT = 0.85
_LETTERS = re.compile(r"[^\w]+")


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
    """Return whether a recogniser that was told the words could have written this: in order, no other number."""
    wanted, written = normalised(words).split(), normalised(heard).split()
    if any(_alike(written[at : at + len(wanted)], wanted) for at in range(len(written) - len(wanted) + 1)):
        return True
    return len(wanted) > 1 and any(_letters_alike(stretch, words) for stretch in _stretches(heard, len(words.split())))


def _stretches(text: str, count: int) -> Iterator[str]:
    """Yield every stretch of about so many words of a text as it is written."""
    words = _LETTERS.sub(" ", text).split()
    for length in (count - 1, count, count + 1):
        for at in range(len(words) - length + 1):
            yield " ".join(words[at : at + length])


def _letters_alike(stretch: str, words: str) -> bool:
    one, other = (_LETTERS.sub("", text).casefold() for text in (stretch, words))
    if len(one) < LETTERS_LEFT * len(other) or SequenceMatcher(None, one, other).ratio() < LETTERS_ALIKE:
        return False
    numbers = [{word for word in normalised(text).split() if word[0].isdigit()} for text in (stretch, words)]
    return numbers[0] <= numbers[1]


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
