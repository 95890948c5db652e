"""Tells a model that repeats turns instead of writing facts.

A model of one or two billion parameters does that: it names the first turn of a batch and gives its words as a fact
('oh no', 'how much is it'). All checks pass, because somebody said it, and the summary fills up with such words. Of 143
recorded answers of strong models (benchmarks/memory/recorded) none has such a fact; of the first 17 answers of
Qwen2.5-Coder 1.5B to one of these conversations 12 have nothing but one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.language.text import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import Turn
    from compaction.summary.answer import ModelFact

# An answer is not used if its only fact is copied and that of another of so many answers was. One alone can be chance:
# 'The password is bluebird' needs no other words. Several quotes are a choice, as code would make one.
_RECENT = 4


class CopiedFacts:
    """Watches the answers of one model, and remembers of the last few whether their only fact was copied."""

    def __init__(self) -> None:
        self._recent: tuple[bool, ...] = ()

    def note(self, facts: Sequence[ModelFact], turns: Sequence[Turn]) -> bool:
        """Return whether the facts of one more answer are worth nothing. `turns`: all that its prompt showed."""
        copied = len(facts) == 1 and is_copied(facts[0].text, turns)
        habit = any(self._recent)
        self._recent = (*self._recent, copied)[-_RECENT + 1 :]
        return copied and habit


def is_copied(text: str, turns: Sequence[Turn]) -> bool:
    """Return whether a fact is word for word in one of these turns, with or without its speaker before it ('Bob: ')."""
    return any(
        _is_within(words(text.removeprefix(f"{part.speaker}:")), part.text) for turn in turns for part in turn.parts
    )


def _is_within(told: Sequence[str], said: str) -> bool:
    return bool(told) and f" {' '.join(told)} " in f" {' '.join(words(said))} "
